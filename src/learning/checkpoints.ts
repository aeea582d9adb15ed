// The checkpoints that a run goes on from, or an evaluation plays, proven whole before anything starts: what is found
// corrupt in the middle has cost the episodes before it.
import { InputError } from "../failure/errors.ts";
import { samplingVersion } from "../rollout/groups.ts";
import { readOverlap } from "../run/cloud-settings.ts";
import {
  closedKey,
  criticPrefix,
  evaluationPrefix,
  optimizerPrefix,
  policiesPrefix,
  policyPrefix,
} from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import { readManifest, verifyFolder } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";

/**
 * Policy, critic and optimizer of the newest version, and the policy that plays with one-step asynchrony. Nothing is read
 * of a run that is done.
 *
 * @throws InputError for the first file that is missing or differs from its manifest
 */
export async function assertCanGoOn(store: ObjectStore, run: string): Promise<void> {
  const { config } = await readRun(store, run);
  const { policyPublished: version } = (await readState(store, run)).state;
  if (version >= config.training.iterations) return;
  const playing = samplingVersion(version, (await readOverlap(store, run)) ?? false);
  for (const one of new Set([version, playing])) await assertPolicy(store, run, one);
  for (const folder of [criticPrefix(run, version), optimizerPrefix(run, version)]) {
    // Of version 0 there may be none.
    const manifest = await readManifest(store, folder);
    if (manifest !== undefined) await verifyFolder(store, folder, manifest);
  }
}

/**
 * The policy of an evaluation, unless the evaluation is closed and only read.
 *
 * @throws InputError when there is no such version, or a file of it is missing or differs from its manifest
 */
export async function assertCanEvaluate(
  store: ObjectStore,
  {
    run,
    evaluation,
    version,
  }: { readonly run: string; readonly evaluation: string; readonly version: number },
): Promise<void> {
  if ((await store.head(closedKey(evaluationPrefix(run, evaluation)))) === undefined)
    await assertPolicy(store, run, version);
}

async function assertPolicy(store: ObjectStore, run: string, version: number): Promise<void> {
  const folder = policyPrefix(run, version);
  const manifest = await readManifest(store, folder);
  if (manifest !== undefined) return verifyFolder(store, folder, manifest);
  const kept = (await Array.fromAsync(store.folders(policiesPrefix(run)))).map(Number);
  throw new InputError({
    what: "no such version of the policy",
    where: `${store.url}/${folder}`,
    expected: `expected a folder with manifest.json; there are versions ${kept.join(", ") || "none"}`,
    fix: "take one of these versions, or restore the folder from a copy; keep.policyEvery says which stay",
  });
}
