// The episodes of a phase in shards, one driver each. Only episodes without a finished attempt are sharded, so a phase
// that is run again starts drivers for what is missing and for nothing else. Nothing is missing from a closed phase: what
// failed in it has failed.
import { z } from "zod";
import { sha256 } from "../files/sha256.ts";
import { closedKey, episodePrefix, type PhasePrefix } from "../run/keys.ts";
import type { PlannedEpisode } from "../run/records.ts";
import { IntegersText } from "../settings/environment.ts";
import { encodeJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { readAttempts } from "./score.ts";

/** One line of the list of shards: a few hundred bytes, since it becomes the input of an execution. */
export const Shard = z.strictObject({
  run: z.string(),
  phase: z.string(),
  shard: z.int().nonnegative(),
  /** Numbers of episodes as text: the machine hands it to the driver's environment as it is. */
  episodes: IntegersText,
  policyVersion: z.int().nonnegative(),
});

/**
 * The version that plays an iteration. With overlap, an iteration's episodes are played while the policy before it is
 * still trained, so the version before that one plays. A function of the iteration alone: an episode that is repeated
 * later is played by the same version.
 */
export function samplingVersion(iteration: number, overlap: boolean): number {
  return overlap ? Math.max(0, iteration - 1) : iteration;
}

/** @returns `shardsKey` is named by the content of the list: what is missing differs from one time to the next */
export async function writeShards(
  {
    run,
    phase,
    plan,
    episodesPerDriver,
    policyVersion,
  }: {
    readonly run: string;
    readonly phase: PhasePrefix;
    readonly plan: readonly PlannedEpisode[];
    readonly episodesPerDriver: number;
    readonly policyVersion: number;
  },
  { store }: { readonly store: ObjectStore },
): Promise<{ readonly shardsKey: string; readonly shardCount: number }> {
  const finished = await Promise.all(
    plan.map(async ({ episode }) =>
      (await readAttempts(store, episodePrefix(phase, episode))).some(record => record.failure === undefined),
    ),
  );
  const isClosed = (await store.head(closedKey(phase))) !== undefined;
  const missing = plan.filter((_, index) => !isClosed && !finished[index]).map(({ episode }) => episode);
  const shards = Array.from({ length: Math.ceil(missing.length / episodesPerDriver) }, (_, shard) => {
    const episodes = missing.slice(shard * episodesPerDriver, (shard + 1) * episodesPerDriver);
    return z.encode(Shard, { run, phase, shard, episodes, policyVersion });
  });
  const body = encodeJsonLines(shards);
  const shardsKey = `${phase}shards/${sha256(body).slice(0, 16)}.jsonl`;
  await putOnce(store, shardsKey, body);
  return { shardsKey, shardCount: shards.length };
}
