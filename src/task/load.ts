// Loads a Harbor task folder as one validated value. It accepts what Harbor 0.26.0's loader accepts; load.test.ts lists
// each deliberate difference with its reason.
import { realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { deriveConfig } from "./derive-settings.ts";
import { deriveSteps } from "./derive-steps.ts";
import { findEnvironmentSource } from "./environment-source.ts";
import { hashEntries } from "./hash.ts";
import { hashParts } from "./hash-parts.ts";
import { assertLinksEnd, assertLinksInside } from "./links.ts";
import { listFolder } from "./list-folder.ts";
import { listIgnored } from "./list-ignored.ts";
import { readTaskToml } from "./read-task-toml.ts";
import { readText } from "./read-text.ts";
import type { Task } from "./task.ts";

/**
 * @param folder a task folder, of any format from 1.0 to 1.4
 * @throws InputError when the task could not be run and verified; the message says where and why
 */
export async function loadTask(folder: string): Promise<Task> {
  const root = resolveFolder(folder);
  const file = join(root, "task.toml");
  const { toml, warnings } = readTaskToml(readText(file), file);
  const stepNames = toml.steps.map(step => step.name);
  const entries = listFolder(root);
  assertLinksInside(root, entries);
  const ignored = listIgnored(root, entries);
  const uploads = ["tests", "solution", ...stepNames.map(name => join("steps", name))];
  assertLinksEnd(root, entries, { uploads, ignored });
  return {
    name: toml.task?.name ?? basename(root),
    folder: root,
    config: deriveConfig(toml),
    metadata: toml.metadata,
    environment: findEnvironmentSource(join(root, "environment"), toml.environment.docker_image),
    steps: deriveSteps(root, toml, ignored),
    ignored,
    hashes: hashParts(root, await hashEntries(root, entries), stepNames),
    warnings,
  };
}

function resolveFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (cause) {
    const text = {
      what: "task folder not found",
      where: folder,
      expected: "a folder with a task.toml",
      fix: "correct the path",
    };
    throw new InputError(text, { cause });
  }
}
