// Draws one token from the log-probs of the whole vocabulary.
import type { RandomStream } from "../../random/stream.ts";
import type { SamplingSettings } from "../sampler.ts";

export interface DrawnToken {
  readonly id: number;
  /** log of the probability with which this token was drawn, nats: 0 when no other one could have been. */
  readonly logProb: number;
}

/**
 * Draws from the distribution that top-k and top-p leave, renormalised over the kept ids. Both filters look at the
 * full distribution: the topK likeliest ids, and of these the fewest whose probabilities reach topP (what SGLang calls
 * the joint order).
 *
 * @param logProbs [V] at the sampling temperature, nats, all finite
 */
export function drawToken(
  logProbs: Float32Array,
  { temperature, topP, topK }: SamplingSettings,
  random: RandomStream,
): DrawnToken {
  if (temperature === 0) return { id: likeliest(logProbs), logProb: 0 };
  if (topP === 1 && topK === 0) {
    const id = drawFrom(logProbs, undefined, random);
    return { id, logProb: logProbs[id] };
  }
  const { ids, mass } = nucleus(logProbs, topP, topK);
  const id = drawFrom(logProbs, ids, random);
  return { id, logProb: ids.size === 1 ? 0 : logProbs[id] - Math.log(mass) };
}

/** The lowest id of the largest log-prob. */
function likeliest(logProbs: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logProbs.length; id++) if (logProbs[id] > logProbs[best]) best = id;
  return best;
}

/** Inverse of the cumulative distribution over `kept` ids (all when undefined), in id order and double precision. */
function drawFrom(
  logProbs: Float32Array,
  kept: ReadonlySet<number> | undefined,
  random: RandomStream,
): number {
  let total = 0;
  for (let id = 0; id < logProbs.length; id++)
    if (kept === undefined || kept.has(id)) total += Math.exp(logProbs[id]);
  let rest = random.uniform() * total;
  let last = 0;
  for (let id = 0; id < logProbs.length; id++) {
    if (kept !== undefined && !kept.has(id)) continue;
    const probability = Math.exp(logProbs[id]);
    if (probability > 0) last = id;
    rest -= probability;
    if (rest < 0) return id;
  }
  return last;
}

/** The kept ids and the probability that they have together. */
function nucleus(logProbs: Float32Array, topP: number, topK: number) {
  const sorted = Array.from(logProbs, (_, id) => id).sort((a, b) => logProbs[b] - logProbs[a] || a - b);
  const ids = new Set<number>();
  let mass = 0;
  for (const id of topK === 0 ? sorted : sorted.slice(0, topK)) {
    ids.add(id);
    mass += Math.exp(logProbs[id]);
    if (mass >= topP) break;
  }
  return { ids, mass };
}
