// Checks the checkpoints that a run goes on from, or an evaluation plays, before anything starts: a corrupt file that is
// found in the middle has cost the episodes before it.
import { samplingVersion } from "../rollout/shards.ts";
import { readOverlap } from "../run/cloud-settings.ts";
import { closedKey, evaluationPrefix } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import { verifyPolicy, verifyVersion } from "../run/version.ts";
import type { ObjectStore } from "../store/object-store.ts";

/**
 * The newest version, and the policy that plays with one-step asynchrony. Nothing is read of a run that is done.
 *
 * @throws InputError for the first file that is missing or differs from its manifest
 */
export async function assertCanGoOn(store: ObjectStore, run: string): Promise<void> {
  const { config } = await readRun(store, run);
  const { policyPublished: version } = (await readState(store, run)).state;
  if (version >= config.training.iterations) return;
  await verifyVersion(store, { run, version });
  const playing = samplingVersion(version, (await readOverlap(store, run)) ?? false);
  if (playing !== version) await verifyPolicy(store, { run, version: playing });
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
    await verifyPolicy(store, { run, version });
}
