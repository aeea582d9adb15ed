// Where a step is verified: in the agent's environment or in one of its own, and then where that comes from.
import { statSync } from "node:fs";
import { join } from "node:path";
import { deriveEnvironment } from "./derive-settings.ts";
import { findEnvironmentSource } from "./environment-source.ts";
import type { VerifierPlace } from "./task.ts";
import type { StepToml, TaskToml, VerifierToml } from "./task-toml.ts";

/**
 * A step's word counts before the task's; an environment table without a mode means a separate environment. Its image
 * is that of the table or, without one, is built from the tests folder beside it. A separate verifier with neither
 * runs in a fresh copy of the agent's environment, and the tests are uploaded as in the shared mode.
 *
 * @param folder the task folder
 * @throws InputError when a separate environment comes from nowhere
 */
export function deriveVerifierPlace(
  folder: string,
  toml: TaskToml,
  step: StepToml | undefined,
): VerifierPlace {
  const mode = modeOf(step?.verifier) ?? modeOf(toml.verifier) ?? "shared";
  if (mode === "shared") return { kind: "shared" };

  const table = step?.verifier.environment ?? toml.verifier.environment ?? toml.environment;
  const candidates = [
    ...(step === undefined
      ? []
      : [{ table: step.verifier.environment, tests: join(folder, "steps", step.name, "tests") }]),
    { table: toml.verifier.environment, tests: join(folder, "tests") },
  ];
  for (const { table: own, tests } of candidates) {
    const image = own?.docker_image || undefined;
    if (
      image === undefined &&
      !isFile(join(tests, "Dockerfile")) &&
      !isFile(join(tests, "docker-compose.yaml"))
    ) {
      continue;
    }
    const found = findEnvironmentSource(tests, image);
    const source = found.kind === "image" ? { ...found, uploadsFolder: false } : found;
    return { kind: "separate", source, settings: deriveEnvironment(table), hasTestsInImage: true };
  }
  const source = findEnvironmentSource(join(folder, "environment"), toml.environment.docker_image);
  const settings = deriveEnvironment({ ...table, os: table.os ?? toml.environment.os });
  return { kind: "separate", source, settings, hasTestsInImage: false };
}

function modeOf(verifier: VerifierToml | undefined): "shared" | "separate" | undefined {
  return verifier?.environment_mode ?? (verifier?.environment === undefined ? undefined : "separate");
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
