// The content hash of each part of a task. A part is a set of files, hashed with their paths within the task
// (hash.ts), so that moving a file from one step to another changes the hash.
import { existsSync, realpathSync } from "node:fs";
import { join, relative } from "node:path";
import { combineHashes, type HashedEntry } from "./hash.ts";

/** SHA-256 in hex. */
export interface TaskHashes {
  /** instruction.md, or those of the steps */
  readonly instruction: string;
  /** task.toml */
  readonly config: string;
  /** environment/ */
  readonly environment: string;
  /** tests/ of the task and of each step */
  readonly tests: string;
  /** solution/ of the task and of each step */
  readonly solution: string;
  /** Every file of the task folder, also those of no other part. */
  readonly task: string;
}

/**
 * @param folder  the task folder, symbolic links resolved
 * @param entries everything in it, hashed
 * @param stepNames names of [[steps]]; empty for a task without
 */
export function hashParts(
  folder: string,
  entries: readonly HashedEntry[],
  stepNames: readonly string[],
): TaskHashes {
  const steps = stepNames.map(name => `steps/${name}`);
  const part = (name: string) =>
    combineHashes(entriesOf(folder, entries, [name, ...steps.map(step => `${step}/${name}`)]));
  return {
    instruction: part("instruction.md"),
    config: combineHashes(entriesOf(folder, entries, ["task.toml"])),
    environment: combineHashes(entriesOf(folder, entries, ["environment"])),
    tests: part("tests"),
    solution: part("solution"),
    task: combineHashes(entries),
  };
}

/** The target counts where a path is a symbolic link or lies behind one. */
function entriesOf(
  folder: string,
  entries: readonly HashedEntry[],
  paths: readonly string[],
): readonly HashedEntry[] {
  const roots = paths
    .filter(path => existsSync(join(folder, path)))
    .map(path => relative(folder, realpathSync(join(folder, path))));
  return entries.filter(({ path }) => roots.some(root => path === root || path.startsWith(`${root}/`)));
}
