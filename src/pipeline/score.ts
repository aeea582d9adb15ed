// Turns the verifier reports of a phase into rewards and admits one attempt of each episode. The first attempt that is
// no failure of the infrastructure counts.
import type { RewardConfig } from "../config/run-config.ts";
import { admit } from "../store/claim.ts";
import { encodeJson, readJson } from "../store/json.ts";
import {
  attemptPrefix,
  type EpisodePrefix,
  episodeKey,
  episodePrefix,
  type PhasePrefix,
  parseAttempt,
  rewardKey,
} from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { computeReward, rewardConfigHash } from "../verifier/reward.ts";
import { readPlan } from "./plan.ts";
import { EpisodeRecord } from "./records.ts";

export async function score(
  { phase, rewardConfig }: { readonly phase: PhasePrefix; readonly rewardConfig: RewardConfig },
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const hash = rewardConfigHash(rewardConfig);
  await Promise.all(
    (await readPlan(store, phase)).map(async ({ episode }) => {
      const prefix = episodePrefix(phase, episode);
      const counted = (await readAttempts(store, prefix)).find(record => record.failure === undefined);
      if (counted === undefined) return;
      if (counted.report !== undefined) {
        const record = { config: rewardConfig, reward: computeReward(counted.report, rewardConfig) };
        await putOnce(store, rewardKey(attemptPrefix(prefix, counted.attempt), hash), encodeJson(record));
      }
      await admit(store, prefix, counted.attempt);
    }),
  );
}

/** Records of an episode's finished attempts, in order. */
export async function readAttempts(store: ObjectStore, episode: EpisodePrefix): Promise<EpisodeRecord[]> {
  const finished: number[] = [];
  for await (const { key } of store.list(`${episode}attempt-`)) {
    const { attempt } = parseAttempt(key);
    if (key === episodeKey(attemptPrefix(episode, attempt))) finished.push(attempt);
  }
  return Promise.all(
    finished.map(attempt => readJson(store, episodeKey(attemptPrefix(episode, attempt)), EpisodeRecord)),
  );
}
