// A pool of tasks: a folder of Harbor folders. Runs take its tasks in an order that is shuffled anew each epoch; the
// run's state holds the position as a cursor.
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { InputError } from "../failure/errors.ts";
import { listUserFolder } from "../files/user-files.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";

export interface TaskPool {
  /** Absolute. */
  readonly folder: string;
  /** Names of the task folders, sorted. */
  readonly names: readonly string[];
}

/** Position in the shuffled order of an epoch. */
export interface Cursor {
  readonly epoch: number;
  readonly position: number;
}

export const START: Cursor = { epoch: 0, position: 0 };

/** @throws InputError when the folder is missing or holds no task */
export async function openPool(folder: string): Promise<TaskPool> {
  const absolute = resolve(folder);
  const entries = listUserFolder(absolute, {
    what: "the pool of tasks",
    expected: "a folder of Harbor task folders",
    ifMissing: "t1 tasks generate makes one",
  });
  const folders = entries
    .filter(entry => entry.isDirectory() && !entry.name.startsWith("."))
    .map(entry => entry.name);
  const names = [];
  for (const name of folders.sort()) if (await isTask(join(absolute, name))) names.push(name);
  if (names.length === 0) {
    throw new InputError({
      what: "no task in the pool",
      where: absolute,
      expected: "folders with a task.toml",
      fix: "t1 tasks generate makes one",
    });
  }
  return { folder: absolute, names };
}

/**
 * Takes the next `count` tasks from a cursor. After the end of an epoch the next one's order follows.
 *
 * @param seed of the run
 * @returns names, and the cursor after them
 */
export function takeTasks(
  { names }: TaskPool,
  cursor: Cursor,
  { count, seed, shuffle }: { readonly count: number; readonly seed: number; readonly shuffle: boolean },
): { readonly names: string[]; readonly next: Cursor } {
  const taken: string[] = [];
  let { epoch, position } = cursor;
  while (taken.length < count) {
    const order = shuffle ? new RandomStream(deriveSeed(seed, "pool", epoch)).shuffle(names) : names;
    const part = order.slice(position, position + count - taken.length);
    taken.push(...part);
    position += part.length;
    if (position >= names.length) [epoch, position] = [epoch + 1, 0];
  }
  return { names: taken, next: { epoch, position } };
}

async function isTask(folder: string): Promise<boolean> {
  return (await stat(join(folder, "task.toml")).catch(() => undefined))?.isFile() ?? false;
}
