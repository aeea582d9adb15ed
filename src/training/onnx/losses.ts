// Training losses as graph code. Every term is weighted by an input (loss-weights.ts) and summed.
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
import { logSoftmax, reduceSum, softmax } from "../../tensor/reductions.ts";
import { zeros } from "../../tensor/shaping.ts";

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
 * Clipped surrogate (arXiv 1707.06347, equation 7), to be minimised:
 *
 *   Σ w · max(−ρA, −clip(ρ, 1 − ε, 1 + ε)·A),   ρ = exp(log π − log π_old)
 *
 * All tensors [M, 1].
 */
export function clippedPolicyLoss(
  logProbs: Tensor,
  oldLogProbs: Tensor,
  advantages: Tensor,
  weights: Tensor,
  epsilon: number,
): Tensor {
  const ratio = exp(clip(sub(logProbs, oldLogProbs), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const clipped = clip(ratio, 1 - epsilon, 1 + epsilon);
  const terms = max(neg(mul(ratio, advantages)), neg(mul(clipped, advantages)));
  return weighted(terms, weights);
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

/**
 * Load-balancing loss of one layer, E·Σ_e f_e·P_e / k (arXiv 2101.03961, equation 4): 1 when tokens spread evenly.
 * f_e is the mean number of times that expert e was chosen, P_e its mean probability.
 *
 * @param logits [N, E] router logits, @param routes i32 [N, k]
 */
export function balanceLoss(logits: Tensor, routes: Tensor): Tensor {
  const { graph } = logits;
  const [tokens, experts] = [logits.shape[0], Number(logits.shape[1])];
  const choices = Number(routes.shape[1]);
  const count = graph.withoutTape(() =>
    graph.node("Cast", [graph.dim(tokens)], { shape: [1], attributes: { to: 1 } }),
  );
  const chosen = graph.withoutTape(() => {
    const ones = graph.node("Expand", [graph.scalar(1), graph.shapeTensor(routes.shape)], {
      shape: routes.shape,
    });
    const hits = graph.node("ScatterElements", [zeros(logits, logits.shape), routes, ones], {
      shape: logits.shape,
      attributes: { axis: 1 },
    });
    return graph.node("Div", [reduceSum(hits, [0]), count], { shape: [1, experts] });
  });
  const inverse = graph.withoutTape(() => graph.node("Reciprocal", [count], { shape: [1] }));
  const probability = mul(reduceSum(softmax(logits), [0]), inverse);
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
