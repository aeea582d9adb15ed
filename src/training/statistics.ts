// Numbers that tell how training goes, each over all trainable tokens of a batch at once.
import { InvariantError } from "../failure/errors.ts";
import type { Batch } from "./batch.ts";

/** Mean of values; 0 of none. */
export function mean(values: ArrayLike<number> & Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return values.length === 0 ? 0 : sum / values.length;
}

/** The numbers of the trainable tokens out of arrays [N] per chunk, laid end to end. */
export function trainableOf({ chunks }: Batch, perChunk: readonly Float32Array[]): Float32Array {
  return Float32Array.from(
    perChunk.flatMap((array, chunk) => [...array.filter((_, t) => chunks[chunk].mask[t] === 1)]),
  );
}

/** Relative size below which differences of single-precision numbers are rounding. */
const ROUNDING = 1e-6;

/**
 * Whether values differ by more than rounding: Var > (10⁻⁶·max|x|)².
 *
 * @param summands numbers that the values are sums of: theirs is the rounding, too
 */
export function hasSpread(
  values: Float32Array | readonly number[],
  summands: Float32Array | readonly number[] = [],
): boolean {
  const largest = Math.max(largestOf(values), largestOf(summands));
  return variance(values) > (ROUNDING * largest) ** 2;
}

function largestOf(values: Iterable<number>): number {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  return largest;
}

/**
 * Explained variance of the critic, 1 − Var[R − V] / Var[R], population variances over the whole batch. (A mean of
 * micro-batch values is another number: RLinf#1297.)
 *
 * @returns at most 1; undefined when the returns, which are sums of a value and an advantage, differ by no more than rounding
 */
export function explainedVariance(returns: Float32Array, values: Float32Array): number | undefined {
  if (returns.length !== values.length)
    throw new InvariantError("explained variance: lengths differ", {
      returns: returns.length,
      values: values.length,
    });
  if (!hasSpread(returns, values)) return undefined;
  return 1 - variance(returns.map((value, i) => value - values[i])) / variance(returns);
}

export interface Mismatch {
  readonly mean: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * Gap between what trainer and sampler think of the same sampled tokens.
 *
 *   |Δ log p|_t = |log π_trainer,t − log π_sampler,t|
 *
 * @param trainer [M] nats, sampled tokens only
 * @param sampler [M]
 * @returns mean, 99th percentile and maximum over the tokens (T1, arXiv 2609.11042: normalised by their number)
 */
export function logProbMismatch(trainer: Float32Array, sampler: Float32Array): Mismatch {
  if (trainer.length !== sampler.length || trainer.length === 0) {
    throw new InvariantError("mismatch: lengths differ or nothing to compare", {
      trainer: trainer.length,
      sampler: sampler.length,
    });
  }
  const gaps = Float64Array.from(trainer, (value, i) => Math.abs(value - sampler[i])).sort();
  return {
    mean: mean(gaps),
    p99: gaps[Math.floor(0.99 * (gaps.length - 1))],
    max: gaps[gaps.length - 1],
  };
}

/** Population variance. */
function variance(values: Float32Array | readonly number[]): number {
  let center = 0;
  for (const value of values) center += value / values.length;
  let sum = 0;
  for (const value of values) sum += (value - center) ** 2;
  return sum / values.length;
}
