// Pools of tasks that lie in the store instead of in a folder, so that stages on other machines can read them. A config
// names one as `store:NAME`.
//   pools/<name>/tasks/<task>.tar    the task's folder
//   pools/<name>/pool.json           names and content hashes, written last
import { symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import { makeFolders } from "../files/make-folders.ts";
import { sha256 } from "../files/sha256.ts";
import { packFolder } from "../sandbox/tar.ts";
import { readTarEntries } from "../sandbox/tar-entries.ts";
import { encodeJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { loadTask } from "../task/load.ts";
import { openPool } from "../task/pool.ts";
import { needsOf, TaskNeeds } from "./task-needs.ts";

/** What planning needs to know of a pool. */
export interface PlannablePool {
  /** As a run records it: an absolute folder, or `store:NAME`. */
  readonly folder: string;
  /** Sorted. */
  readonly names: readonly string[];
  readonly hashOf: (task: string) => Promise<string>;
}

const PoolIndex = z.strictObject({
  format: z.literal("t1-pool-1"),
  tasks: z.array(
    z.strictObject({
      name: z.string().regex(/^[^/\0]+$/),
      hash: z.string().regex(/^[0-9a-f]{64}$/),
      needs: TaskNeeds.optional(),
    }),
  ),
});

const SCHEME = "store:";

/** @returns undefined for the path of a folder @throws InputError for a name that cannot be part of a key */
export function storedPoolName(folder: string): string | undefined {
  if (!folder.startsWith(SCHEME)) return undefined;
  const name = folder.slice(SCHEME.length);
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return name;
  throw new InputError({
    what: "invalid name of a stored pool",
    where: folder,
    expected: "store: and 1 to 64 letters, digits, dots, dashes or underscores",
    fix: "e.g. store:train-15k",
  });
}

/**
 * Puts a folder of tasks into the store. Safe to run again with the same tasks: what is there is not sent again.
 *
 * @param name of the pool; left out, it is the folder's with a hash of its tasks, so that other tasks get another
 * @param onTask called with how many tasks are there
 */
export async function storePool(
  {
    folder,
    name,
    onTask,
  }: {
    readonly folder: string;
    readonly name?: string;
    readonly onTask?: (done: number, total: number) => void;
  },
  { store }: { readonly store: ObjectStore },
): Promise<{ readonly pool: string; readonly taskCount: number }> {
  if (name !== undefined) storedPoolName(`${SCHEME}${name}`);
  const { folder: absolute, names } = await openPool(folder);
  const tasks = await inBatches(names, async task => {
    const loaded = await loadTask(join(absolute, task));
    return { name: task, hash: loaded.hashes.task, needs: needsOf(loaded) };
  });
  const named = name ?? contentName(absolute, tasks);
  const there = new Set((await Array.fromAsync(store.list(tasksPrefix(named)))).map(({ key }) => key));
  let done = 0;
  await inBatches(tasks, async task => {
    // Named by content: times in the archive differ from one packing to the next, the task does not.
    const key = taskKey(named, task.hash);
    if (!there.has(key))
      await store.put(key, await packFolder(join(absolute, task.name)), { ifNoneMatch: "*" });
    onTask?.(++done, tasks.length);
  });
  await putOnce(store, indexKey(named), encodeJson({ format: "t1-pool-1", tasks }));
  return { pool: `${SCHEME}${named}`, taskCount: tasks.length };
}

/** Requests to a bucket take tens of milliseconds each, so a pool of thousands is not sent one by one. */
const AT_ONCE = 16;

async function inBatches<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE)
    results.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(work))));
  return results;
}

function contentName(
  folder: string,
  tasks: readonly { readonly name: string; readonly hash: string }[],
): string {
  const base = basename(folder)
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 40);
  return `${base || "pool"}-${sha256(encodeJson(tasks)).slice(0, 12)}`;
}

/** Opens what a config names: a folder, or a pool of the store. @throws InputError when it is missing or empty */
export async function openPlannablePool(
  folder: string,
  store: ObjectStore | undefined,
): Promise<PlannablePool> {
  const name = storedPoolName(folder);
  if (name === undefined) {
    const pool = await openPool(folder);
    return { ...pool, hashOf: async task => (await loadTask(join(pool.folder, task))).hashes.task };
  }
  if (store === undefined)
    throw new InputError({
      what: "no such pool",
      where: folder,
      expected: "expected it in the store, which is not there yet",
      fix: "check --local",
    });
  const hashes = await readIndex(store, name);
  return {
    folder,
    names: [...hashes.keys()].sort(),
    hashOf: async task => hashOf(hashes, task),
  };
}

/**
 * Brings tasks of a stored pool into a folder, each in one of its name.
 *
 * @param tasks names; those of a pool in a folder need no bringing
 * @throws the signal's reason between two tasks
 */
export async function fetchTasks(
  { pool, tasks, into }: { readonly pool: string; readonly tasks: readonly string[]; readonly into: string },
  { store, signal }: { readonly store: ObjectStore; readonly signal?: AbortSignal },
): Promise<void> {
  const hashes = await readIndex(store, pool);
  for (const task of new Set(tasks)) {
    signal?.throwIfAborted();
    const key = taskKey(pool, hashOf(hashes, task));
    const found = await store.get(key);
    if (found === undefined)
      throw new InputError({
        what: "a task of the pool is missing",
        where: key,
        fix: "store the pool again",
      });
    await unpack(found.body, join(into, task), key);
  }
}

async function readIndex(store: ObjectStore, name: string): Promise<Map<string, string>> {
  const { tasks } = await readJson(store, indexKey(name), PoolIndex);
  return new Map(tasks.map(task => [task.name, task.hash]));
}

/** What the tasks of a stored pool ask for; nothing of those that an older version has stored. */
export async function readNeeds(
  pool: string,
  { store }: { readonly store: ObjectStore },
): Promise<ReadonlyMap<string, TaskNeeds>> {
  const { tasks } = await readJson(store, indexKey(pool), PoolIndex);
  return new Map(tasks.flatMap(({ name, needs }) => (needs === undefined ? [] : [[name, needs] as const])));
}

function hashOf(hashes: ReadonlyMap<string, string>, task: string): string {
  const hash = hashes.get(task);
  if (hash === undefined) throw new InvariantError("a task is not in its pool", { task });
  return hash;
}

function indexKey(name: string): string {
  return `pools/${name}/pool.json`;
}

function tasksPrefix(name: string): string {
  return `pools/${name}/tasks/`;
}

function taskKey(name: string, hash: string): string {
  return `${tasksPrefix(name)}${hash}.tar`;
}

/** Archives are our own (`packFolder`), but whoever can write to the store could write outside the folder by one. */
async function unpack(tar: Uint8Array, folder: string, where: string): Promise<void> {
  makeFolders(folder);
  for (const { path: name, kind, mode, content, target } of readTarEntries(tar)) {
    const parts = name.split("/");
    if (parts.some(part => part === "" || part === "." || part === ".."))
      throw new InputError({ what: "an archive leads out of its folder", where, expected: name });
    const path = join(folder, ...parts);
    if (kind === "folder") makeFolders(path);
    else {
      makeFolders(dirname(path));
      if (kind === "link") await symlink(target, path);
      else await writeFile(path, content, { mode, flag: "wx" });
    }
  }
}
