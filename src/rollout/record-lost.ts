// Episodes whose driver ended without a word: no attempt of theirs was ever finished. Without a record the phase could
// not be closed; with one they count as failures of the infrastructure, which are in no rate and no baseline.
import { claimAttempt } from "../run/claim.ts";
import { attemptPrefix, episodeKey, episodePrefix, type PhasePrefix } from "../run/keys.ts";
import type { EpisodeRecord, PlannedEpisode } from "../run/records.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { readAttempts } from "./score.ts";

/** Records episodes as lost. Call it only when no driver of the phase is left. @returns how many were lost */
export async function recordLost(
  {
    phase,
    plan,
    now,
  }: { readonly phase: PhasePrefix; readonly plan: readonly PlannedEpisode[]; readonly now: Date },
  { store }: { readonly store: ObjectStore },
): Promise<number> {
  const lost = await Promise.all(
    plan.map(async ({ episode, task, taskHash }) => {
      const prefix = episodePrefix(phase, episode);
      if ((await readAttempts(store, prefix)).length > 0) return false;
      const claim = { holder: "score", claimedAtMs: now.getTime() };
      const attempt = await claimAttempt(store, prefix, claim);
      const record: EpisodeRecord = {
        format: "t1-episode-1",
        episode,
        attempt,
        task,
        taskHash,
        labels: {},
        policyVersion: 0,
        endReason: "failure",
        turnCount: 0,
        tokenCount: 0,
        sampledTokenCount: 0,
        startedAt: now.toISOString(),
        times: { sandboxStartMs: 0, samplerMs: 0, commandMs: 0, verifierMs: 0, totalMs: 0 },
        failure: {
          layer: "runner",
          name: "DriverLost",
          retryable: true,
          detail: "its driver ended before any attempt was finished",
        },
      };
      await putOnce(store, episodeKey(attemptPrefix(prefix, attempt)), encodeJson(record));
      return true;
    }),
  );
  return lost.filter(Boolean).length;
}
