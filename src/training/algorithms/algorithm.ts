// What an algorithm is: settings, what it needs of a batch, advantages, and the form of its loss. All of it is data or
// plain arithmetic on arrays, so that any engine can carry it out.
import type { z } from "zod";
import type { StepSettings } from "../adam-settings.ts";
import type { Batch, Truncation } from "../batch.ts";
import type { LossMean } from "../loss-weights.ts";
import type { Metrics } from "../metrics.ts";
import type { Schedule } from "../schedule.ts";

/** Settings that every algorithm has which learns from the policy's own episodes. */
interface PolicySettings {
  readonly lossMean: LossMean;
  /** Optimizer steps that one pass over the batch is cut into. */
  readonly minibatches: number;
  /** Experts of the sampler (R3) in old log-probs and updates; false only for comparison. */
  readonly replay: boolean;
  readonly truncation: Truncation;
  readonly permuteRewards: boolean;
  readonly actor: StepSettings;
}

/**
 * The clipped surrogate (arXiv 1707.06347, equation 7), to be minimised:
 *
 *   Σ w · max(−ρA, −clip(ρ, 1 − low, 1 + high)·A)
 */
export interface Surrogate {
  /**
   * ρ = exp(log π − log π_old) of each token, or for all tokens of a chunk the exponential of their mean, which is the
   * length-normalised ratio of the sequence's likelihoods.
   */
  readonly ratio: "token" | "sequence";
  readonly clip: { readonly low: number; readonly high: number };
}

interface CriticScores {
  /** Per chunk [N]: V_t on trainable tokens, 0 elsewhere. */
  readonly values: readonly Float32Array[];
  /** Per episode: V after its last token where the truncation rule asks for it, else 0. */
  readonly ends: readonly number[];
}

interface Advantages {
  /** Per chunk [N], 0 on masked tokens. */
  readonly advantages: readonly Float32Array[];
  /** Per chunk [N]: targets of the critic; of algorithms with a critic only. */
  readonly returns?: readonly Float32Array[];
  readonly metrics: Metrics;
}

/** An algorithm with its settings, that learns from the policy's own episodes. */
export interface PolicyMethod {
  readonly learnsFrom: "episodes";
  readonly algorithm: string;
  readonly settings: PolicySettings;
  readonly surrogate: Surrogate;
  readonly critic?: StepSettings & { readonly clipRange: number };
  /** Episodes of each task in an iteration. 1 unless episodes of a task are compared. */
  readonly groupSize: number;
  /** Passes over the batch in an iteration. */
  passes(iteration: number): { readonly actor: number; readonly critic: number };
  /** @param scores given when the method has a critic */
  advantages(batch: Batch, scores?: CriticScores): Advantages;
}

/** An algorithm with its settings, that learns from answers which others gave. */
export interface ImitationMethod {
  readonly learnsFrom: "demonstrations";
  readonly algorithm: string;
  readonly groupSize: 1;
  readonly settings: Omit<StepSettings, "learningRate"> & {
    readonly episodesPerStep: number;
    readonly passes: number;
    readonly balanceFactor: number;
    readonly minReward: number;
  };
  /** @param planned episodes that every iteration was to have */
  schedule(planned: { readonly episodes: number }): Schedule;
}

export type Method = PolicyMethod | ImitationMethod;

export interface Algorithm<Name extends string, Settings extends z.ZodType> {
  readonly name: Name;
  readonly says: string;
  readonly settings: Settings;
  readonly learnsFrom: Method["learnsFrom"];
  /** @param training settings as `settings` makes them */
  method(training: unknown): Method;
}

/** Ties an algorithm's behaviour to its settings. */
export function algorithm<const Name extends string, Settings extends z.ZodType>({
  use,
  ...description
}: Omit<Algorithm<Name, Settings>, "method"> & {
  readonly use: (settings: z.infer<Settings>) => Method;
}): Algorithm<Name, Settings> {
  return { ...description, method: training => use(description.settings.parse(training)) };
}
