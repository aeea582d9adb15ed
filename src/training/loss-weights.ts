// What share of a loss each token has. The loss is Σ weight·term, so that any split into micro-batches gives the same
// sum: no denominator is ever taken over a part of the batch.
import { InvariantError } from "../failure/errors.ts";

/**
 * `episode`: each episode weighs the same, its tokens over all its chunks share its weight (T1's reducer).
 * `token`: each trainable token of the batch weighs the same.
 */
export type LossMean = "episode" | "token";

/**
 * @param masks per episode the loss mask [N] of each of its chunks
 * @returns weights of the same shape, 0 on masked tokens; they sum to 1 over the batch
 * @throws InvariantError when no token is trainable (a mean over nothing is not 0)
 */
export function lossWeights(masks: readonly (readonly Uint8Array[])[], mean: LossMean): Float32Array[][] {
  const tokenCounts = masks.map(chunks => chunks.reduce((sum, mask) => sum + countOnes(mask), 0));
  const episodeCount = tokenCounts.filter(count => count > 0).length;
  const total = tokenCounts.reduce((sum, count) => sum + count, 0);
  if (total === 0) throw new InvariantError("a loss over no token", { episodes: masks.length });
  return masks.map((chunks, episode) => {
    const weight = mean === "token" ? 1 / total : 1 / (episodeCount * tokenCounts[episode]);
    return chunks.map(mask => Float32Array.from(mask, bit => (bit === 1 ? weight : 0)));
  });
}

function countOnes(mask: Uint8Array): number {
  return mask.reduce((sum, bit) => sum + bit, 0);
}
