// Finds task folders at any depth below a folder, as corpora have them.
import { join, resolve } from "node:path";
import { InputError } from "../failure/errors.ts";
import { listUserFolder } from "../files/user-files.ts";
import type { TaskPool } from "./pool.ts";

/**
 * Does not look into a task, whose own folders may have a task.toml. Skips hidden folders.
 *
 * @returns names are paths below the folder, sorted; "." when the folder is a task itself
 * @throws InputError when the folder is missing or holds no task
 */
export function findTasks(folder: string): TaskPool {
  const absolute = resolve(folder);
  const names = [...tasksBelow(absolute, ".")].sort();
  if (names.length > 0) return { folder: absolute, names };
  throw new InputError({
    what: "no task in the folder",
    where: absolute,
    expected: "folders with a task.toml, at any depth",
    fix: "check the path; t1 tasks generate makes a pool",
  });
}

function* tasksBelow(root: string, path: string): Generator<string> {
  const entries = listUserFolder(join(root, path), { what: "a folder of tasks", expected: "a folder" });
  if (entries.some(entry => entry.name === "task.toml" && entry.isFile())) {
    yield path;
    return;
  }
  for (const entry of entries)
    if (entry.isDirectory() && !entry.name.startsWith(".")) yield* tasksBelow(root, join(path, entry.name));
}
