// What the stages of a run write for each other: schemas of everything in the store that is JSON.
import { z } from "zod";
import { END_REASONS, type EndReason } from "../failure/end-reason.ts";
import { ERROR_NAMES, FAILURE_LAYERS } from "../failure/errors.ts";
import { RewardConfig, VerifierModeName } from "../settings/grading-config.ts";
import { VerifierReport } from "../verifier/report.ts";
import { Reward } from "../verifier/reward.ts";
import { Tampering } from "../verifier/tampering.ts";

const EndReasonName = z.enum(Object.keys(END_REASONS) as [EndReason, ...EndReason[]]);
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const Count = z.int().nonnegative();
const Milliseconds = z.number().nonnegative();

/** One line of `plan.jsonl`. */
export const PlannedEpisode = z.strictObject({
  episode: Count,
  /** Folder name in the pool, and the content that was planned. */
  task: z.string(),
  taskHash: Sha256,
  /** Which of several episodes of the same task. */
  repeat: Count,
  seed: z.string(),
});
export type PlannedEpisode = z.infer<typeof PlannedEpisode>;

const FailureRecord = z.strictObject({
  layer: z.enum(FAILURE_LAYERS),
  name: z.enum(ERROR_NAMES),
  retryable: z.boolean(),
  detail: z.string(),
});

/** Of the files that an agent left. */
const KeptRecord = z.union([
  z.strictObject({ sha256: Sha256, sizeBytes: Count }),
  z.strictObject({ notKept: z.string() }),
]);

/** One step of a task that has several. */
const StepRecord = z.strictObject({
  name: z.string(),
  endReason: EndReasonName,
  report: VerifierReport,
  tampering: Tampering.optional(),
  kept: KeptRecord.optional(),
});

/** `episode.json`, written last: an attempt without it did not happen. */
export const EpisodeRecord = z.strictObject({
  format: z.literal("t1-episode-1"),
  episode: Count,
  attempt: Count,
  task: z.string(),
  taskHash: Sha256,
  /** From the task's metadata, for reports: families, kind, and whatever else is a string or a list of them. */
  labels: z.record(z.string(), z.union([z.string(), z.array(z.string()), z.boolean(), z.number()])),
  policyVersion: Count,
  endReason: EndReasonName,
  turnCount: Count,
  tokenCount: Count,
  sampledTokenCount: Count,
  startedAt: z.iso.datetime(),
  times: z.strictObject({
    sandboxStartMs: Milliseconds,
    samplerMs: Milliseconds,
    commandMs: Milliseconds,
    verifierMs: Milliseconds,
    totalMs: Milliseconds,
  }),
  /** Of several steps, all that ran together. */
  report: VerifierReport.optional(),
  verifier: z.strictObject({ mode: VerifierModeName, kept: KeptRecord.optional() }).optional(),
  /** What was found of the agent's in places from which it reaches into the verifier. */
  tampering: Tampering.optional(),
  /** Those that ran, of a task that has several. */
  steps: z.strictObject({ strategy: z.enum(["mean", "final"]), list: z.array(StepRecord) }).optional(),
  failure: FailureRecord.optional(),
  /** SHA-256 of arrays.safetensors; absent when nothing was sampled. */
  arraysSha256: Sha256.optional(),
});
export type EpisodeRecord = z.infer<typeof EpisodeRecord>;

export const RewardRecord = z.strictObject({
  config: RewardConfig,
  reward: Reward,
  /** Of a later grading of what was kept: how, when, and what it found. */
  regraded: z
    .strictObject({
      mode: VerifierModeName,
      gradedAt: z.iso.datetime(),
      report: VerifierReport,
      tampering: Tampering.optional(),
    })
    .optional(),
});
export type RewardRecord = z.infer<typeof RewardRecord>;

export const ClosedEpisode = z.strictObject({
  episode: Count,
  attempt: Count,
  endReason: EndReasonName,
  reward: z.number(),
  resolved: z.boolean(),
  passed: Count,
  total: Count,
  turnCount: Count,
  tokenCount: Count,
  sampledTokenCount: Count,
  task: z.string(),
  labels: EpisodeRecord.shape.labels,
  arraysSha256: Sha256.optional(),
  recordSha256: Sha256,
});
export type ClosedEpisode = z.infer<typeof ClosedEpisode>;

/** `closed.json`: the input of everything after the rollout. */
export const ClosedPhase = z.strictObject({
  format: z.literal("t1-closed-1"),
  policyVersion: Count,
  rewardConfig: RewardConfig,
  episodes: z.array(ClosedEpisode),
  /** Planned episodes that are not trained on, and why. */
  failed: z.array(
    z.strictObject({
      episode: Count,
      task: z.string(),
      labels: EpisodeRecord.shape.labels,
      failure: FailureRecord,
    }),
  ),
  cancelled: z.array(
    z.strictObject({
      episode: Count,
      task: z.string(),
      labels: EpisodeRecord.shape.labels,
      tokenCount: Count,
      turnCount: Count,
    }),
  ),
});
export type ClosedPhase = z.infer<typeof ClosedPhase>;

/** `timings.json`: wall time of each stage; apart from metrics, which are a function of the closed list alone. */
export const Timings = z.record(z.string(), Milliseconds);
export type Timings = z.infer<typeof Timings>;
