// The share of a loss that each token has. The loss is Σ weight·term, so that any split into micro-batches gives the
// same sum: no denominator is ever taken over a part of the batch.
import { InvariantError } from "../failure/errors.ts";

/**
 * `episode`: each episode weighs the same, its tokens over all its chunks share its weight (T1's reducer).
 * `token`: each trainable token weighs the same.
 */
export type LossMean = "episode" | "token";

/**
 * @param masks loss mask [N] per chunk
 * @param owners per chunk, a number of its episode
 * @returns weights [N] per chunk, 0 on masked tokens; they sum to 1 over all chunks
 * @throws InvariantError when no token is trainable (a mean over nothing is not 0)
 */
export function lossWeights(
  masks: readonly Uint8Array[],
  owners: readonly number[],
  mean: LossMean,
): Float32Array[] {
  const tokens = new Map<number, number>();
  masks.forEach((mask, chunk) => {
    const ones = mask.reduce((sum, bit) => sum + bit, 0);
    if (ones > 0) tokens.set(owners[chunk], (tokens.get(owners[chunk]) ?? 0) + ones);
  });
  const total = tokens.values().reduce((sum, count) => sum + count, 0);
  if (total === 0) throw new InvariantError("a loss over no token", { chunks: masks.length });
  return masks.map((mask, chunk) => {
    const weight = mean === "token" ? 1 / total : 1 / (tokens.size * (tokens.get(owners[chunk]) ?? 0));
    return Float32Array.from(mask, bit => (bit === 1 ? weight : 0));
  });
}
