// Intervals by bootstrap over tasks: episodes of one task resemble each other, so tasks are drawn, not episodes.
import { InvariantError } from "../failure/errors.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";

export interface Interval {
  readonly mean: number;
  /** Bounds of the central 95 %. */
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 10_000;
const OUTSIDE = 0.025;

/**
 * Mean over tasks with its percentile interval (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13).
 *
 * @param perTask one number per task: the mean over its episodes, or a paired difference
 * @param seed derived; the same numbers and seed give the same interval
 */
export function bootstrapMean(perTask: readonly number[], seed: string): Interval {
  if (perTask.length === 0) throw new InvariantError("an interval over no task");
  const random = new RandomStream(deriveSeed(seed, "bootstrap"));
  const means = Float64Array.from({ length: RESAMPLES }, () => {
    let sum = 0;
    for (let draw = 0; draw < perTask.length; draw++) sum += perTask[random.integer(perTask.length)];
    return sum / perTask.length;
  }).sort();
  return { mean: meanOf(perTask), low: quantile(means, OUTSIDE), high: quantile(means, 1 - OUTSIDE) };
}

/** With fewer tasks that changed, even if all went one way, the exact sign-flip test gives p ≥ 2 / 2⁵ = 0.0625. */
const FEWEST_CHANGED = 6;

/**
 * Mean of paired differences with its interval. Resampling a handful of tasks that changed, all the same way, would
 * hardly ever give 0 and call it a finding: then the interval is widened to hold 0.
 *
 * @param differences one per task, after minus before
 */
export function bootstrapDifference(differences: readonly number[], seed: string): Interval {
  const { mean, low, high } = bootstrapMean(differences, seed);
  if (differences.filter(difference => difference !== 0).length >= FEWEST_CHANGED) return { mean, low, high };
  return { mean, low: Math.min(0, low), high: Math.max(0, high) };
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Linear between the two nearest order statistics. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}
