// Draws one token from the log-probs of all.
import type { RandomStream } from "../../random/stream.ts";
import type { SamplingSettings } from "../sampler.ts";

/**
 * @param logProbs [V] at the sampling temperature, nats
 * @returns a token id; ties of temperature 0 go to the lowest id
 */
export function drawToken(
  logProbs: Float32Array,
  { temperature, topP, topK }: SamplingSettings,
  random: RandomStream,
): number {
  if (temperature === 0) return likeliest(logProbs);
  if (topP === 1 && topK === 0) return drawFrom(logProbs, undefined, random);
  return drawFrom(logProbs, nucleus(logProbs, topP, topK), random);
}

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

/** The topK likeliest ids, and of these the fewest that together reach topP. */
function nucleus(logProbs: Float32Array, topP: number, topK: number): Set<number> {
  const ids = Array.from(logProbs, (_, id) => id).sort((a, b) => logProbs[b] - logProbs[a] || a - b);
  const kept = new Set<number>();
  let mass = 0;
  for (const id of topK === 0 ? ids : ids.slice(0, topK)) {
    kept.add(id);
    mass += Math.exp(logProbs[id]);
    if (mass >= topP) break;
  }
  return kept;
}
