// `metrics.json` of an iteration: what its episodes were and how training went. A function of the closed list alone.
import { z } from "zod";
import { metricsKey, type PhasePrefix } from "../run/keys.ts";
import type { ClosedEpisode, ClosedPhase } from "../run/records.ts";
import { readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { METRIC_NAMES, type Metrics } from "../training/metrics.ts";
import { mean } from "../training/statistics.ts";

export const IterationMetrics = z.strictObject({
  format: z.literal("t1-metrics-2"),
  policyVersion: z.int(),
  /** Episodes by the reason that they ended. */
  endReasons: z.record(z.string(), z.int()),
  /** By name, as training/metrics.ts explains them. */
  numbers: z.partialRecord(z.enum(METRIC_NAMES), z.number()),
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

/** What a closed phase and its training come to. */
export function describeIteration(
  { policyVersion, episodes, failed, cancelled }: ClosedPhase,
  trained: Metrics,
): IterationMetrics {
  const meanOf = (value: (episode: ClosedEpisode) => number): number => mean(episodes.map(value));
  const endReasons: Record<string, number> = {};
  for (const { endReason } of episodes) endReasons[endReason] = (endReasons[endReason] ?? 0) + 1;
  return {
    format: "t1-metrics-2",
    policyVersion,
    endReasons,
    numbers: {
      "episodes.count": episodes.length,
      "episodes.failed": failed.length,
      "episodes.cancelled": cancelled.length,
      "episodes.meanReward": meanOf(episode => episode.reward),
      "episodes.resolvedRate": meanOf(episode => Number(episode.resolved)),
      "episodes.passingShare": meanOf(({ passed, total }) => (total === 0 ? 0 : passed / total)),
      "episodes.meanTurns": meanOf(episode => episode.turnCount),
      "episodes.meanTokens": meanOf(episode => episode.tokenCount),
      "episodes.meanSampledTokens": meanOf(episode => episode.sampledTokenCount),
      ...trained,
    },
  };
}
