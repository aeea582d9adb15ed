// Makes a trained version the run's newest policy, and deletes what the run's `keep` setting does not want to stay.

import { InvariantError } from "../failure/errors.ts";
import { criticPrefix, optimizerPrefix, policyPrefix } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { advanceState, readState } from "../run/run-state.ts";
import { manifestKey, readManifest } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";

export async function publish(
  { run, version }: { readonly run: string; readonly version: number },
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  if ((await readManifest(store, policyPrefix(run, version))) === undefined) {
    throw new InvariantError("a policy that is not whole would be published", { run, version });
  }
  await advanceState(store, run, await readState(store, run), { kind: "publish-policy", version });
  await prune(store, run, version);
}

/** The newest two versions always stay: the one in use, and the one before it for whoever reads it right now. */
async function prune(store: ObjectStore, run: string, newest: number): Promise<void> {
  const old = newest - 2;
  if (old < 0) return;
  const { config } = await readRun(store, run);
  if (old % config.keep.policyEvery !== 0) await deleteFolder(store, policyPrefix(run, old));
  if (old % config.keep.stateEvery !== 0) {
    await deleteFolder(store, criticPrefix(run, old));
    await deleteFolder(store, optimizerPrefix(run, old));
  }
}

/** The manifest goes first: a folder that is being deleted does not count. */
async function deleteFolder(store: ObjectStore, prefix: string): Promise<void> {
  await store.delete(manifestKey(prefix));
  for await (const { key } of store.list(prefix)) await store.delete(key);
}
