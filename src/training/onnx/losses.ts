// Training losses as graph code. Every term is weighted by an input (loss-weights.ts) and summed.

import type { LayerRouting } from "../../model/blocks.ts";
import {
  add,
  clip,
  compare,
  exp,
  max,
  mul,
  neg,
  stopGradient,
  sub,
  where,
} from "../../tensor/elementwise.ts";
import type { Tensor } from "../../tensor/graph.ts";
import { pickLast } from "../../tensor/indexing.ts";
import { matmul } from "../../tensor/linear.ts";
import { logSoftmax, reduceSum, softmax } from "../../tensor/reductions.ts";
import { zeros } from "../../tensor/shaping.ts";
import type { Surrogate } from "../algorithms/algorithm.ts";

/** Log-ratios are bounded here before exp, so that a broken pair of log-probs cannot become infinite (miles#1363). */
const LOG_RATIO_LIMIT = 20;

export interface TokenScores {
  /** [M, 1] log π of the target tokens, nats. */
  readonly logProbs: Tensor;
  /** [M, 1] −Σ π log π, nats; no gradient. */
  readonly entropy: Tensor;
}

/** @param logits [M, V], @param targets i32 [M, 1] */
export function scoreTokens(logits: Tensor, targets: Tensor): TokenScores {
  const logProbs = logSoftmax(logits);
  const { graph } = logits;
  const constant = stopGradient(logProbs);
  const entropy = graph.withoutTape(() => neg(reduceSum(mul(exp(constant), constant), [-1])));
  return { logProbs: pickLast(logProbs, targets), entropy };
}

/**
 * Clipped surrogate, Σ w · max(−ρA, −clip(ρ, 1 − low, 1 + high)·A); its ratio ρ as `Surrogate` says.
 *
 * @param tokens all [M, 1]
 * @param chunks asked for when the ratio is a sequence's
 */
export function clippedPolicyLoss(
  {
    logProbs,
    oldLogProbs,
    advantages,
    weights,
  }: Readonly<Record<"logProbs" | "oldLogProbs" | "advantages" | "weights", Tensor>>,
  { ratio: kind, clip: { low, high } }: Surrogate,
  chunks: () => ChunkRows,
): Tensor {
  const token = sub(logProbs, oldLogProbs);
  const logRatio = kind === "token" ? token : meanOfChunk(token, chunks());
  const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const clipped = clip(ratio, 1 - low, 1 + high);
  const terms = max(neg(mul(ratio, advantages)), neg(mul(clipped, advantages)));
  return weighted(terms, weights);
}

/** Which rows belong to which chunk, as matrices. */
export interface ChunkRows {
  /** [S, M] 1 / (trainable tokens of the chunk) at its rows, 0 elsewhere. */
  readonly means: Tensor;
  /** [M, S] 1 at the chunk of each row, 0 elsewhere. */
  readonly members: Tensor;
}

/** At every row the mean over the rows of its chunk. @param x [M, 1] */
function meanOfChunk(x: Tensor, { means, members }: ChunkRows): Tensor {
  return matmul(members, matmul(means, x));
}

/**
 * Clipped value loss: Σ w · max((V − R)², (V_old + clip(V − V_old, −ε, ε) − R)²), without a factor ½.
 *
 * All tensors [M, 1].
 */
export function clippedValueLoss(
  values: Tensor,
  oldValues: Tensor,
  returns: Tensor,
  weights: Tensor,
  epsilon: number,
): Tensor {
  const plain = sub(values, returns);
  const clipped = sub(add(oldValues, clip(sub(values, oldValues), -epsilon, epsilon)), returns);
  return weighted(max(mul(plain, plain), mul(clipped, clipped)), weights);
}

/** −Σ w · log π */
export function negativeLogLikelihood(logProbs: Tensor, weights: Tensor): Tensor {
  return weighted(neg(logProbs), weights);
}

/** How often each expert of a layer was chosen by real tokens: [1, E], whole numbers. */
export function countChoices({ logits, routes }: LayerRouting, isReal: Tensor): Tensor {
  const { graph } = logits;
  return graph.withoutTape(() => {
    const ones = graph.node("Expand", [isReal, graph.shapeTensor(routes.shape)], { shape: routes.shape });
    const hits = graph.node("ScatterElements", [zeros(logits, logits.shape), routes, ones], {
      shape: logits.shape,
      attributes: { axis: 1 },
    });
    return reduceSum(hits, [0]);
  });
}

/**
 * The part of a micro-batch in the load-balancing loss of one layer over a whole batch, E·Σ_e f_e·P_e / k (arXiv
 * 2101.03961, equation 4; 1 when tokens spread evenly). f_e is how often a token of the batch chose expert e, P_e the
 * mean over the batch of its probability; both are over real tokens. With f_e known of the whole batch the parts of
 * micro-batches add up to the batch's loss and gradient.
 *
 * @param isReal [N, 1] 1 at tokens, 0 at padding
 * @param elsewhere [1, E] choices in the other micro-batches of the batch
 * @param share [] 1 / (real tokens of the batch)
 */
export function balanceLoss(
  routing: LayerRouting,
  { isReal, elsewhere, share }: Readonly<Record<"isReal" | "elsewhere" | "share", Tensor>>,
): Tensor {
  const { logits, routes } = routing;
  const { graph } = logits;
  const [experts, choices] = [Number(logits.shape[1]), Number(routes.shape[1])];
  const chosen = graph.withoutTape(() => mul(add(countChoices(routing, isReal), elsewhere), share));
  const probability = mul(reduceSum(mul(softmax(logits), isReal), [0]), share);
  return mul(reduceSum(mul(chosen, probability), [0, 1]), graph.scalar(experts / choices));
}

/** Mean over scalars of shape [1, 1]; at least one. */
export function meanOf(losses: readonly Tensor[]): Tensor {
  return mul(
    losses.reduce((sum, loss) => add(sum, loss)),
    losses[0].graph.scalar(1 / losses.length),
  );
}

/** A weight of 0 removes a term even when the term is no number (NaN × 0 would stay NaN, OpenRLHF#1240). */
function weighted(terms: Tensor, weights: Tensor): Tensor {
  const { graph } = terms;
  const counted = compare("Greater", weights, graph.scalar(0));
  return reduceSum(where(counted, mul(terms, weights), graph.scalar(0)), [0]);
}
