// `metrics.json` of an iteration: what its episodes were and how training went. A function of the closed list alone.
import { z } from "zod";
import { metricsKey, type PhasePrefix } from "../run/keys.ts";
import { readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";

const Mismatch = z.strictObject({ mean: z.number(), p99: z.number(), max: z.number() });

export const IterationMetrics = z.strictObject({
  policyVersion: z.int(),
  episodes: z.strictObject({
    count: z.int(),
    failedCount: z.int(),
    cancelledCount: z.int(),
    meanReward: z.number(),
    resolvedRate: z.number(),
    passingShare: z.number(),
    meanTurns: z.number(),
    meanTokens: z.number(),
    meanSampledTokens: z.number(),
    endReasons: z.record(z.string(), z.int()),
  }),
  ppo: z
    .strictObject({
      episodeCount: z.int(),
      trainedTokenCount: z.int(),
      meanReturn: z.number(),
      explainedVariance: z.number().optional(),
      valueLoss: z.number(),
      criticGradientNorm: z.number(),
      /** A dense model has no routes to replay. */
      mismatch: z.strictObject({ replayed: Mismatch.optional(), free: Mismatch }),
      entropy: z.number(),
      policy: z
        .strictObject({
          loss: z.number(),
          gradientNorm: z.number(),
          clipShare: z.number(),
          klToOld: z.number(),
        })
        .optional(),
    })
    .optional(),
  sft: z
    .strictObject({
      stepCount: z.int(),
      trainedTokenCount: z.int(),
      loss: z.number(),
      lastLoss: z.number(),
      learningRate: z.number(),
    })
    .optional(),
});
export type IterationMetrics = z.infer<typeof IterationMetrics>;

/** `audit.json`: every turn's receipt was made again from the stored tensors before anything was trained, and agreed. */
export const AuditRecord = z.strictObject({
  policyVersion: z.int(),
  chunkCount: z.int(),
  receiptCount: z.int(),
  tokenCount: z.int(),
  sampledTokenCount: z.int(),
});
export type AuditRecord = z.infer<typeof AuditRecord>;

/** @throws InputError when the iteration was not trained (yet) */
export function readMetrics(store: ObjectStore, phase: PhasePrefix): Promise<IterationMetrics> {
  return readJson(store, metricsKey(phase), IterationMetrics);
}
