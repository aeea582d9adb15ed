// Turns the verifier reports of a phase into rewards and admits one attempt of each episode. The first attempt that is
// no failure of the infrastructure counts.

import { admit, listAttempts } from "../run/claim.ts";
import {
  attemptPrefix,
  type EpisodePrefix,
  episodeKey,
  episodePrefix,
  type PhasePrefix,
  rewardKey,
} from "../run/keys.ts";
import type { EpisodeRecord, PlannedEpisode } from "../run/records.ts";
import type { RewardConfig } from "../settings/grading-config.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import type { VerifierReport } from "../verifier/report.ts";
import { computeReward, type Reward, rewardConfigHash } from "../verifier/reward.ts";
import { computeStepsReward } from "../verifier/step-rewards.ts";
import { parseEpisodeRecord } from "./episode-record.ts";

export async function score(
  {
    phase,
    plan,
    rewardConfig,
  }: {
    readonly phase: PhasePrefix;
    readonly plan: readonly PlannedEpisode[];
    readonly rewardConfig: RewardConfig;
  },
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const hash = rewardConfigHash(rewardConfig);
  await Promise.all(
    plan.map(async ({ episode }) => {
      const prefix = episodePrefix(phase, episode);
      const counted = (await readAttempts(store, prefix)).find(record => record.failure === undefined);
      if (counted === undefined) return;
      if (counted.report !== undefined) {
        const record = { config: rewardConfig, reward: rewardOf(counted, counted.report, rewardConfig) };
        await putOnce(store, rewardKey(attemptPrefix(prefix, counted.attempt), hash), encodeJson(record));
      }
      await admit(store, prefix, counted.attempt);
    }),
  );
}

/** Of several steps by the task's own strategy, of which the record holds the result. */
export function rewardOf({ steps }: EpisodeRecord, report: VerifierReport, config: RewardConfig): Reward {
  if (steps === undefined) return computeReward(report, config);
  return computeStepsReward(
    steps.list.map(step => step.report),
    steps.strategy,
    config,
  );
}

/** Records of an episode's finished attempts, in order. */
export async function readAttempts(store: ObjectStore, episode: EpisodePrefix): Promise<EpisodeRecord[]> {
  const attempts = (await listAttempts(store, episode)).map(attempt => attemptPrefix(episode, attempt));
  const found = await Promise.all(attempts.map(at => store.get(episodeKey(at))));
  return found.flatMap((object, index) =>
    object === undefined ? [] : [parseEpisodeRecord(object.body, attempts[index])],
  );
}
