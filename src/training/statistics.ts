// Numbers that tell how training goes, each over all trainable tokens of a batch at once.
import { InvariantError } from "../failure/errors.ts";

/**
 * Explained variance of the critic, 1 − Var[R − V] / Var[R], population variances over the whole batch. (A mean of
 * micro-batch values is another number: RLinf#1297.)
 *
 * @returns at most 1; undefined when the returns do not vary
 */
export function explainedVariance(returns: Float32Array, values: Float32Array): number | undefined {
  if (returns.length !== values.length)
    throw new InvariantError("explained variance: lengths differ", {
      returns: returns.length,
      values: values.length,
    });
  const total = variance(returns);
  if (total === 0) return undefined;
  return 1 - variance(returns.map((value, i) => value - values[i])) / total;
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
    mean: gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length,
    p99: gaps[Math.floor(0.99 * (gaps.length - 1))],
    max: gaps[gaps.length - 1],
  };
}

function variance(values: Float32Array): number {
  let mean = 0;
  for (const value of values) mean += value / values.length;
  let sum = 0;
  for (const value of values) sum += (value - mean) ** 2;
  return sum / values.length;
}
