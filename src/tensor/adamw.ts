// AdamW on plain arrays, outside the graph: gradients of micro-batches are first summed, then clipped by their global
// norm. Arithmetic is in double precision, values are stored in single.
import { InvariantError } from "../failure/errors.ts";

export interface AdamWSettings {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  /** Factor on the parameter per unit of learning rate; 0 for parameters that are not decayed. */
  readonly weightDecay: number;
}

/** First and second moment of one parameter's gradient. */
export interface Moments {
  readonly first: Float32Array;
  readonly second: Float32Array;
}

/** sqrt of the sum of squares over all gradients. */
export function globalNorm(gradients: Iterable<Float32Array>): number {
  let sum = 0;
  for (const gradient of gradients) {
    for (let i = 0; i < gradient.length; i++) sum += gradient[i] * gradient[i];
  }
  return Math.sqrt(sum);
}

/** Factor that brings a gradient of this norm down to `limit`; 1 when it is below (as torch's clip_grad_norm_). */
export function clipCoefficient(norm: number, limit: number): number {
  return Math.min(1, limit / (norm + 1e-6));
}

/**
 * One AdamW step in place (decoupled weight decay, bias correction; arXiv 1711.05101 and 1412.6980).
 *
 * @param step number of this step, from 1
 * @param gradientScale factor on the gradient before it is used
 */
export function adamWStep(
  parameter: Float32Array,
  gradient: Float32Array,
  { first, second }: Moments,
  {
    step,
    gradientScale,
    ...settings
  }: AdamWSettings & { readonly step: number; readonly gradientScale: number },
): void {
  if (
    gradient.length !== parameter.length ||
    first.length !== parameter.length ||
    second.length !== parameter.length
  ) {
    throw new InvariantError("AdamW: lengths differ", {
      parameter: parameter.length,
      gradient: gradient.length,
    });
  }
  const { learningRate, beta1, beta2, epsilon, weightDecay } = settings;
  const correction1 = 1 - beta1 ** step;
  const correction2 = 1 - beta2 ** step;
  const keep = 1 - learningRate * weightDecay;
  for (let i = 0; i < parameter.length; i++) {
    const g = gradient[i] * gradientScale;
    const m = beta1 * first[i] + (1 - beta1) * g;
    const v = beta2 * second[i] + (1 - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] =
      parameter[i] * keep - (learningRate * (m / correction1)) / (Math.sqrt(v / correction2) + epsilon);
  }
}
