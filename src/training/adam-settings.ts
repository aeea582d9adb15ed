// How one optimizer step is taken.
import { z } from "zod";
import { Rate, Share } from "../settings/numbers.ts";

export const adam = {
  weightDecay: z
    .number()
    .nonnegative()
    .default(0.1)
    .meta({ description: "Decoupled weight decay; norm weights are not decayed." }),
  beta1: Share.default(0.9).meta({ description: "Decay of the first moment." }),
  beta2: Share.default(0.98).meta({
    description: "Decay of the second moment. 0.98: T1; adapts faster than 0.999.",
  }),
  epsilon: Rate.default(1e-8).meta({ description: "Added to the root of the second moment." }),
  clipNorm: Rate.default(1).meta({
    description: "Gradients with a larger global norm are scaled down to it.",
  }),
};

export interface StepSettings {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** Gradients with a larger global norm are scaled down to it. */
  readonly clipNorm: number;
}
