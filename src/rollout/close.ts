// Closes a phase: fixes the list of what counts, with hashes, once. Everything later is a function of this list.

import { Failure, InputError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import { readAdmitted } from "../run/claim.ts";
import { attemptPrefix, closedKey, episodePrefix, type PhasePrefix, rewardKey } from "../run/keys.ts";
import { ClosedPhase, type PlannedEpisode, RewardRecord } from "../run/records.ts";
import type { RewardConfig } from "../settings/grading-config.ts";
import { encodeJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { isResolved } from "../verifier/report.ts";
import { rewardConfigHash } from "../verifier/reward.ts";
import { readEpisodeRecord } from "./episode-record.ts";
import { readPlan } from "./plan.ts";
import { readAttempts } from "./score.ts";

export interface CloseInput {
  readonly phase: PhasePrefix;
  readonly policyVersion: number;
  readonly rewardConfig: RewardConfig;
  /** Episodes without which the phase is not closed. */
  readonly minimum: number;
}

export async function close(
  { phase, policyVersion, rewardConfig, minimum }: CloseInput,
  { store }: { readonly store: ObjectStore },
): Promise<ClosedPhase> {
  // What is closed stays as it is: training is a function of it, and may have begun.
  if ((await store.head(closedKey(phase))) !== undefined) return readClosed(store, phase);
  const closed: ClosedPhase = {
    format: "t1-closed-1",
    policyVersion,
    rewardConfig,
    episodes: [],
    failed: [],
    cancelled: [],
  };
  const plan = await readPlan(store, phase);
  const outcomes = await Promise.all(plan.map(planned => readOutcome(store, phase, planned, rewardConfig)));
  for (const outcome of outcomes) {
    if (outcome.kind === "counted") closed.episodes.push(outcome.entry);
    else if (outcome.kind === "failed") closed.failed.push(outcome.entry);
    else closed.cancelled.push(outcome.entry);
  }
  if (closed.episodes.length < minimum) throw tooFew(closed, minimum, phase);
  await putOnce(store, closedKey(phase), encodeJson(closed));
  return closed;
}

export function readClosed(store: ObjectStore, phase: PhasePrefix): Promise<ClosedPhase> {
  return readJson(store, closedKey(phase), ClosedPhase);
}

/** Nothing is closed, so that a resumed run tries the failed episodes again. */
function tooFew({ episodes, failed }: ClosedPhase, minimum: number, phase: PhasePrefix): InputError {
  const [example] = failed;
  return new InputError({
    what: "the infrastructure failed too often",
    where: phase,
    expected: `expected at least ${minimum} finished episodes, got ${episodes.length}; ${failed.length} failed, such as: ${example?.failure.detail ?? "none"}`,
    fix: "remove the cause and resume the run: finished episodes are kept, failed ones are tried again",
  });
}

type Outcome =
  | { readonly kind: "counted"; readonly entry: ClosedPhase["episodes"][number] }
  | { readonly kind: "failed"; readonly entry: ClosedPhase["failed"][number] }
  | { readonly kind: "cancelled"; readonly entry: ClosedPhase["cancelled"][number] };

async function readOutcome(
  store: ObjectStore,
  phase: PhasePrefix,
  { episode, task }: PlannedEpisode,
  rewardConfig: RewardConfig,
): Promise<Outcome> {
  const prefix = episodePrefix(phase, episode);
  const attempt = await readAdmitted(store, prefix);
  if (attempt === undefined) {
    const last = (await readAttempts(store, prefix)).at(-1);
    if (last?.failure === undefined) {
      // Closing now would lose the episode without a trace.
      throw new Failure(
        "RunStopped",
        `${prefix} has neither an admitted attempt nor a failure: its rollout did not end`,
        { retryable: true },
      );
    }
    return { kind: "failed", entry: { episode, task, labels: last.labels, failure: last.failure } };
  }
  const at = attemptPrefix(prefix, attempt);
  const record = await readEpisodeRecord(store, at);
  const { labels, turnCount, tokenCount, sampledTokenCount, endReason, report } = record;
  if (report === undefined)
    return { kind: "cancelled", entry: { episode, task, labels, tokenCount, turnCount } };
  const { reward } = await readJson(store, rewardKey(at, rewardConfigHash(rewardConfig)), RewardRecord);
  const recordSha256 = sha256(encodeJson(record));
  const counts = { turnCount, tokenCount, sampledTokenCount };
  const scored = {
    reward: reward.value,
    resolved: isResolved(report),
    passed: reward.passed,
    total: reward.total,
  };
  const hashes = {
    recordSha256,
    ...(record.arraysSha256 !== undefined && { arraysSha256: record.arraysSha256 }),
  };
  return {
    kind: "counted",
    entry: { episode, attempt, endReason, ...scored, ...counts, task, labels, ...hashes },
  };
}
