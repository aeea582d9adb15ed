// What an evaluation says: rates with intervals, per group, and what missing episodes could change.
import { z } from "zod";
import { bootstrapMean, type Interval, meanOf } from "./bootstrap.ts";

/** One episode of an evaluation; undefined outcome: the infrastructure failed and its repeats too. */
export interface EvaluatedEpisode {
  readonly task: string;
  readonly outcome?: { readonly resolved: boolean; readonly reward: number };
  /** Groups the task belongs to, e.g. its kind and families. */
  readonly groups: readonly string[];
}

const Interval95 = z.strictObject({
  mean: z.number(),
  low: z.number(),
  high: z.number(),
}) satisfies z.ZodType<Interval>;

const rates = { taskCount: z.int(), episodeCount: z.int(), resolved: Interval95, reward: Interval95 };
const Rates = z.strictObject(rates);
type Rates = z.infer<typeof Rates>;

/** `summary.json` of an evaluation. */
export const EvaluationSummary = z.strictObject({
  ...rates,
  missingCount: z.int(),
  /** Resolved rate when every missing episode counts as not resolved. */
  worstCase: z.number(),
  /** Above MAX_MISSING_SHARE missing episodes could decide the result. */
  valid: z.boolean(),
  groups: z.record(z.string(), Rates),
});
export type EvaluationSummary = z.infer<typeof EvaluationSummary>;

/** An evaluation with more missing episodes than this is invalid. */
const MAX_MISSING_SHARE = 0.02;

export function summariseEvaluation(episodes: readonly EvaluatedEpisode[], seed: string): EvaluationSummary {
  const missingCount = episodes.filter(episode => episode.outcome === undefined).length;
  const groups = [...new Set(episodes.flatMap(episode => episode.groups))].sort();
  const worst = episodes.map(episode => ({
    ...episode,
    outcome: episode.outcome ?? { resolved: false, reward: 0 },
  }));
  return {
    ...ratesOf(episodes, seed),
    missingCount,
    worstCase: meanOf([...perTask(worst, ({ resolved }) => Number(resolved)).values()]),
    valid: missingCount <= MAX_MISSING_SHARE * episodes.length,
    groups: Object.fromEntries(
      groups.map(group => [
        group,
        ratesOf(
          episodes.filter(episode => episode.groups.includes(group)),
          seed,
        ),
      ]),
    ),
  };
}

export interface Comparison {
  readonly taskCount: number;
  /** After minus before, task by task. */
  readonly resolved: Interval;
  readonly reward: Interval;
  readonly groups: Readonly<
    Record<string, { readonly taskCount: number; readonly resolved: Interval; readonly reward: Interval }>
  >;
}

/** Paired difference over the tasks that both evaluations have outcomes of. */
export function compareEvaluations(
  before: readonly EvaluatedEpisode[],
  after: readonly EvaluatedEpisode[],
  seed: string,
): Comparison {
  const groups = [...new Set(after.flatMap(episode => episode.groups))].sort();
  const inGroup = (episodes: readonly EvaluatedEpisode[], group: string) =>
    episodes.filter(episode => episode.groups.includes(group));
  return {
    ...differenceOf(before, after, seed),
    groups: Object.fromEntries(
      groups.map(group => [group, differenceOf(inGroup(before, group), inGroup(after, group), seed)]),
    ),
  };
}

function ratesOf(episodes: readonly EvaluatedEpisode[], seed: string): Rates {
  const resolved = [...perTask(episodes, outcome => Number(outcome.resolved)).values()];
  const reward = [...perTask(episodes, outcome => outcome.reward).values()];
  const none = { mean: 0, low: 0, high: 0 };
  const empty = resolved.length === 0;
  return {
    taskCount: resolved.length,
    episodeCount: episodes.filter(episode => episode.outcome !== undefined).length,
    resolved: empty ? none : bootstrapMean(resolved, seed),
    reward: empty ? none : bootstrapMean(reward, seed),
  };
}

function differenceOf(before: readonly EvaluatedEpisode[], after: readonly EvaluatedEpisode[], seed: string) {
  const paired = (value: (outcome: NonNullable<EvaluatedEpisode["outcome"]>) => number): number[] => {
    const earlier = perTask(before, value);
    return [...perTask(after, value)].flatMap(([task, mean]) => {
      const base = earlier.get(task);
      return base === undefined ? [] : [mean - base];
    });
  };
  const resolved = paired(outcome => Number(outcome.resolved));
  const none = { mean: 0, low: 0, high: 0 };
  if (resolved.length === 0) return { taskCount: 0, resolved: none, reward: none };
  return {
    taskCount: resolved.length,
    resolved: bootstrapMean(resolved, seed),
    reward: bootstrapMean(
      paired(outcome => outcome.reward),
      seed,
    ),
  };
}

/** Mean over the episodes of each task that have an outcome. */
function perTask(
  episodes: readonly EvaluatedEpisode[],
  value: (outcome: NonNullable<EvaluatedEpisode["outcome"]>) => number,
): Map<string, number> {
  const byTask = Map.groupBy(episodes, episode => episode.task);
  const means = new Map<string, number>();
  for (const [task, own] of byTask) {
    const values = own.flatMap(({ outcome }) => (outcome === undefined ? [] : [value(outcome)]));
    if (values.length > 0) means.set(task, meanOf(values));
  }
  return means;
}
