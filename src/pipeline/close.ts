// Closes a phase: fixes the list of what counts, with hashes. Everything later is a function of this list.
import type { RewardConfig } from "../config/run-config.ts";
import { Failure } from "../failure/errors.ts";
import { readAdmitted } from "../store/claim.ts";
import { encodeJson, readJson } from "../store/json.ts";
import { attemptPrefix, closedKey, episodeKey, episodePrefix, type PhasePrefix, rewardKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { sha256 } from "../store/sha256.ts";
import { putOnce } from "../store/write-once.ts";
import { isResolved } from "../verifier/report.ts";
import { rewardConfigHash } from "../verifier/reward.ts";
import { readPlan } from "./plan.ts";
import { ClosedPhase, EpisodeRecord, type PlannedEpisode, RewardRecord } from "./records.ts";
import { readAttempts } from "./score.ts";

export interface CloseInput {
  readonly phase: PhasePrefix;
  readonly policyVersion: number;
  readonly rewardConfig: RewardConfig;
}

export async function close({ phase, policyVersion, rewardConfig }: CloseInput, { store }: { readonly store: ObjectStore }): Promise<ClosedPhase> {
  const closed: ClosedPhase = { format: "t1-closed-1", policyVersion, rewardConfig, episodes: [], failed: [], cancelled: [] };
  const plan = await readPlan(store, phase);
  const outcomes = await Promise.all(plan.map(planned => readOutcome(store, phase, planned, rewardConfig)));
  for (const outcome of outcomes) {
    if (outcome.kind === "counted") closed.episodes.push(outcome.entry);
    else if (outcome.kind === "failed") closed.failed.push(outcome.entry);
    else closed.cancelled.push(outcome.entry);
  }
  await putOnce(store, closedKey(phase), encodeJson(closed));
  return closed;
}

export function readClosed(store: ObjectStore, phase: PhasePrefix): Promise<ClosedPhase> {
  return readJson(store, closedKey(phase), ClosedPhase);
}

type Outcome =
  | { readonly kind: "counted"; readonly entry: ClosedPhase["episodes"][number] }
  | { readonly kind: "failed"; readonly entry: ClosedPhase["failed"][number] }
  | { readonly kind: "cancelled"; readonly entry: ClosedPhase["cancelled"][number] };

async function readOutcome(store: ObjectStore, phase: PhasePrefix, { episode, task }: PlannedEpisode, rewardConfig: RewardConfig): Promise<Outcome> {
  const prefix = episodePrefix(phase, episode);
  const attempt = await readAdmitted(store, prefix);
  if (attempt === undefined) {
    const last = (await readAttempts(store, prefix)).at(-1);
    if (last?.failure === undefined) {
      // Closing now would lose the episode without a trace.
      throw new Failure("RunStopped", `${prefix} has neither an admitted attempt nor a failure: its rollout did not end`, { retryable: true });
    }
    return { kind: "failed", entry: { episode, task, labels: last.labels, failure: last.failure } };
  }
  const at = attemptPrefix(prefix, attempt);
  const record = await readJson(store, episodeKey(at), EpisodeRecord);
  const { labels, turnCount, tokenCount, sampledTokenCount, endReason, report } = record;
  if (report === undefined) return { kind: "cancelled", entry: { episode, task, labels, tokenCount, turnCount } };
  const { reward } = await readJson(store, rewardKey(at, rewardConfigHash(rewardConfig)), RewardRecord);
  const recordSha256 = sha256(encodeJson(record));
  const counts = { turnCount, tokenCount, sampledTokenCount };
  const scored = { reward: reward.value, resolved: isResolved(report), passed: reward.passed, total: reward.total };
  const hashes = { recordSha256, ...(record.arraysSha256 !== undefined && { arraysSha256: record.arraysSha256 }) };
  return { kind: "counted", entry: { episode, attempt, endReason, ...scored, ...counts, task, labels, ...hashes } };
}
