// What an evaluation says: rates with intervals, per group, and what missing episodes could change.
import { z } from "zod";
import { bootstrapDifference, bootstrapMean, type Interval, meanOf } from "./bootstrap.ts";
import { meanShare, pairedDifference, type TaskShare } from "./shares.ts";

/** One episode of an evaluation; undefined outcome: the infrastructure failed and its repeats too. */
export interface EvaluatedEpisode {
  readonly task: string;
  readonly outcome?: { readonly resolved: boolean; readonly reward: number };
  /** Groups the task belongs to, e.g. its kind and families. */
  readonly groups: readonly string[];
}

type Outcome = NonNullable<EvaluatedEpisode["outcome"]>;

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
    worstCase: meanOf([...resolvedByTask(worst).values()].map(({ share }) => share)),
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

/** A sentence for a person in place of differences that say nothing; undefined where either resolved something. */
export function describeNothingResolved(before: Rates, after: Rates): string | undefined {
  if (before.resolved.mean > 0 || after.resolved.mean > 0 || after.taskCount === 0) return undefined;
  return `nothing was resolved by either: ${after.taskCount} tasks leave room for up to ${(100 * after.resolved.high).toFixed(1)} % (95 %)`;
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
  const tasks = [...resolvedByTask(episodes).values()];
  if (tasks.length === 0) return { taskCount: 0, episodeCount: 0, resolved: NONE, reward: NONE };
  return {
    taskCount: tasks.length,
    episodeCount: tasks.reduce((sum, task) => sum + task.episodes, 0),
    resolved: meanShare(tasks),
    reward: bootstrapMean([...rewardByTask(episodes).values()], seed),
  };
}

function differenceOf(before: readonly EvaluatedEpisode[], after: readonly EvaluatedEpisode[], seed: string) {
  const resolved = pairs(resolvedByTask(before), resolvedByTask(after));
  if (resolved.length === 0) return { taskCount: 0, resolved: NONE, reward: NONE };
  const rewards = pairs(rewardByTask(before), rewardByTask(after));
  return {
    taskCount: resolved.length,
    resolved: pairedDifference(
      resolved.map(([earlier]) => earlier),
      resolved.map(([, later]) => later),
    ),
    reward: bootstrapDifference(
      rewards.map(([earlier, later]) => later - earlier),
      seed,
    ),
  };
}

const NONE: Interval = { mean: 0, low: 0, high: 0 };

/** Values of the tasks that both have. */
function pairs<Value>(
  before: ReadonlyMap<string, Value>,
  after: ReadonlyMap<string, Value>,
): [Value, Value][] {
  return [...after].flatMap(([task, later]) => {
    const earlier = before.get(task);
    return earlier === undefined ? [] : [[earlier, later] satisfies [Value, Value]];
  });
}

function resolvedByTask(episodes: readonly EvaluatedEpisode[]): Map<string, TaskShare> {
  return mapValues(outcomesByTask(episodes), outcomes => ({
    share: meanOf(outcomes.map(({ resolved }) => Number(resolved))),
    episodes: outcomes.length,
  }));
}

function rewardByTask(episodes: readonly EvaluatedEpisode[]): Map<string, number> {
  return mapValues(outcomesByTask(episodes), outcomes => meanOf(outcomes.map(({ reward }) => reward)));
}

/** Outcomes of each task that has one. */
function outcomesByTask(episodes: readonly EvaluatedEpisode[]): Map<string, Outcome[]> {
  const outcomes = new Map<string, Outcome[]>();
  for (const { task, outcome } of episodes)
    if (outcome !== undefined) outcomes.set(task, [...(outcomes.get(task) ?? []), outcome]);
  return outcomes;
}

function mapValues<From, To>(map: ReadonlyMap<string, From>, change: (value: From) => To): Map<string, To> {
  return new Map([...map].map(([key, value]) => [key, change(value)]));
}
