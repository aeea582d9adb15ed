// Removes a run from its store, whatever state it is in: started, finished, refused half-way, unreadable.
import { InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { runKey, runPrefix } from "./keys.ts";
import { liveOwner } from "./owner-lease.ts";

/** @throws InputError when nothing of a run of that name is there */
export async function sizeOfRun(
  store: ObjectStore,
  run: string,
): Promise<{ readonly count: number; readonly sizeBytes: number }> {
  const found = await Array.fromAsync(store.list(runPrefix(run)));
  if (found.length === 0)
    throw new InputError({
      what: "no such run",
      where: runPrefix(run),
      expected: `expected it in ${store.url}`,
      fix: "t1 run list names the runs of a store",
    });
  return { count: found.length, sizeBytes: found.reduce((sum, object) => sum + object.sizeBytes, 0) };
}

/**
 * Safe to run again after it was cut off: the record goes first, so that a run which is half deleted is none.
 *
 * @throws InputError while somebody works on the run
 */
export async function deleteRun(store: ObjectStore, run: string): Promise<void> {
  const owner = await liveOwner(store, run, Date.now);
  if (owner !== undefined)
    throw new InputError({
      what: "somebody works on the run",
      where: runPrefix(run),
      expected: `expected nobody, got ${owner.holder}`,
      fix: `t1 run stop ${run}, and delete it when it has stopped`,
    });
  await store.delete(runKey(run));
  for await (const { key } of store.list(runPrefix(run))) await store.delete(key);
}
