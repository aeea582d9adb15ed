// Intervals of shares that hold for rare events too: of how many episodes were resolved, and of how that changed on the
// same tasks. An episode is resolved or not, and episodes of one task resemble each other.
import { InvariantError } from "../failure/errors.ts";
import type { Interval } from "./bootstrap.ts";

/** What one task came to. */
export interface TaskShare {
  /** Share of its episodes that were resolved. */
  readonly share: number;
  /** At least 1. */
  readonly episodes: number;
}

/** The normal quantile of a central 95 %. */
const Z = 1.959964;

/**
 * Wilson's score interval (Journal of the American Statistical Association 22, 1927). Unlike a bootstrap it does not
 * shrink to a point where no episode was resolved, or all were.
 *
 * @param size of the sample, above 0; need not be whole
 */
export function wilson(mean: number, size: number): Interval {
  const center = mean + Z ** 2 / (2 * size);
  const halfWidth = Z * Math.sqrt((mean * (1 - mean)) / size + (Z / (2 * size)) ** 2);
  const scale = 1 + Z ** 2 / size;
  return {
    mean,
    low: Math.max(0, (center - halfWidth) / scale),
    high: Math.min(1, (center + halfWidth) / scale),
  };
}

/** Mean share over tasks with its 95 % interval: Wilson's, for the effective number of episodes. */
export function meanShare(tasks: readonly TaskShare[]): Interval {
  const shares = tasks.map(({ share }) => share);
  return wilson(meanOf(shares), effectiveSize(tasks));
}

/**
 * How many independent episodes tell as much as these, whose repeats of a task resemble each other (Korn and Graubard,
 * Survey Methodology 24, 1998):
 *
 *   n* = p·(1 − p) / (s² / n) · (t_{N−1} / t_{n−1})²,   between n tasks and N episodes
 *
 * with s² the variance of the shares over tasks and t the 97.5 % quantile of Student's distribution. Where nothing was
 * resolved, or everything, nothing shows that repeats are independent, and only tasks count.
 */
export function effectiveSize(tasks: readonly TaskShare[]): number {
  const n = tasks.length;
  if (n === 0) throw new InvariantError("an interval over no task");
  const episodes = tasks.reduce((sum, task) => sum + task.episodes, 0);
  const shares = tasks.map(({ share }) => share);
  const mean = meanOf(shares);
  if (mean <= 0 || mean >= 1 || n === 1) return n;
  const variance = covarianceOf(shares, shares);
  const precision = (studentQuantile(episodes - 1) / studentQuantile(n - 1)) ** 2;
  const size = variance === 0 ? episodes : ((mean * (1 - mean)) / (variance / n)) * precision;
  return Math.min(episodes, Math.max(n, size));
}

/**
 * `after` minus `before` over the same tasks, with its 95 % interval: Newcombe's square-and-add method for pairs
 * (Statistics in Medicine 17, 1998, 2635–2650, method 10), with the intervals of `meanShare` for several episodes per
 * task. With one episode per task it is his method exactly.
 *
 * @param before one for each task, in the order of `after`
 */
export function pairedDifference(before: readonly TaskShare[], after: readonly TaskShare[]): Interval {
  if (before.length !== after.length)
    throw new InvariantError("pairs of tasks", { before: before.length, after: after.length });
  const [first, last] = [meanShare(before), meanShare(after)];
  const r = correlation(
    before.map(({ share }) => share),
    after.map(({ share }) => share),
  );
  const mean = last.mean - first.mean;
  const reach = (a: number, b: number): number => Math.sqrt(Math.max(0, a * a - 2 * r * a * b + b * b));
  return {
    mean,
    low: mean - reach(last.mean - last.low, first.high - first.mean),
    high: mean + reach(last.high - last.mean, first.mean - first.low),
  };
}

/** Of pairs; a positive one is taken nearer to 0 by Newcombe's correction, since few pairs exaggerate it. */
function correlation(a: readonly number[], b: readonly number[]): number {
  const spread = Math.sqrt(covarianceOf(a, a) * covarianceOf(b, b));
  if (spread === 0) return 0;
  const covariance = covarianceOf(a, b);
  return (covariance > 0 ? Math.max(0, covariance - 1 / (2 * a.length)) : covariance) / spread;
}

/** Over all pairs, divided by their number. */
function covarianceOf(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [meanOf(a), meanOf(b)];
  return a.reduce((sum, value, index) => sum + (value - meanA) * (b[index] - meanB), 0) / a.length;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * The 97.5 % quantile of Student's t. One and two degrees have a closed form; from three on the expansion of Cornish and
 * Fisher is right to 0.5 % (Abramowitz and Stegun, 26.7.5).
 */
export function studentQuantile(degrees: number): number {
  if (degrees < 1) throw new InvariantError("degrees of freedom", { degrees });
  if (degrees === 1) return Math.tan(Math.PI * 0.475);
  if (degrees === 2) return Math.sqrt((2 * 0.95 ** 2) / (1 - 0.95 ** 2));
  const z = Z;
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92_160,
  ];
  return terms.reduce((sum, term, index) => sum + term / degrees ** (index + 1), z);
}
