// Removes a run from its store, whatever state it is in: started, finished, refused half-way, unreadable.
import { InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { ownerKey, runKey, runPrefix, stateKey } from "./keys.ts";
import { liveOwner } from "./owner-lease.ts";

/** @throws InputError when there is no such run, or while somebody works on it */
export async function assertDeletable(store: ObjectStore, run: string): Promise<void> {
  const found = await Promise.all([runKey(run), stateKey(run), ownerKey(run)].map(key => store.head(key)));
  if (found.every(object => object === undefined))
    throw new InputError({
      what: "no such run",
      where: runPrefix(run),
      expected: `expected it in ${store.url}`,
      fix: "t1 run list names the runs of a store",
    });
  const owner = await liveOwner(store, run, Date.now);
  if (owner === undefined) return;
  throw new InputError({
    what: "somebody works on the run",
    where: runPrefix(run),
    expected: `expected nobody, got ${owner.holder}`,
    fix: `t1 run stop ${run}, and delete it when it has stopped`,
  });
}

/**
 * Safe to run again after it was cut off: the record goes first, so that a run which is half deleted is none.
 *
 * @param removeJournals of its executions on this machine, whose locks are no objects of the store
 * @returns how many objects were removed
 * @throws InputError as `assertDeletable` does
 */
export async function deleteRun(
  store: ObjectStore,
  run: string,
  removeJournals: () => Promise<void>,
): Promise<number> {
  await assertDeletable(store, run);
  await store.delete(runKey(run));
  await removeJournals();
  const left = await Array.fromAsync(store.list(runPrefix(run)));
  // The owner's lease goes last: until then the name is known to be in use.
  for (const { key } of left.sort(
    (a, b) => Number(a.key === ownerKey(run)) - Number(b.key === ownerKey(run)),
  ))
    await store.delete(key);
  return left.length + 1;
}
