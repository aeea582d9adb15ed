// How policy and critic learn.
import { z } from "zod";
import { ModelSource } from "../settings/model-config.ts";
import { Count, Numbered, Rate, Share } from "../settings/numbers.ts";

const adam = {
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

const Actor = z
  .strictObject({
    learningRate: Rate.default(1e-6).meta({
      description: "Constant. 1e-6: T1, for 122 billion parameters; small models want 100 times as much.",
    }),
    clipRange: Rate.default(0.2).meta({ description: "ε of the clipped surrogate, on both sides." }),
    passes: Count.default(1).meta({
      description: "Passes over each batch. 1: later passes train on the policy's past.",
    }),
    ...adam,
  })
  .prefault({})
  .meta({ description: "Updates of the policy." });

const Critic = z
  .strictObject({
    from: ModelSource.optional().meta({
      description:
        "A warmed-up critic to start from. Left out: the policy's body with a value head of zeros.",
    }),
    onlyIterations: z.int().nonnegative().default(2).meta({
      description:
        "First iterations of the run in which only the critic learns. 2: T1's re-calibration after a warm-up.",
    }),
    onlyPasses: Count.default(1).meta({
      description: "Critic's passes over each batch in those iterations.",
    }),
    learningRate: Rate.default(1.5e-5).meta({
      description:
        "Constant. 1.5e-5: T1; fifteen times the actor's, since values must keep up with the policy.",
    }),
    clipRange: Rate.default(0.2).meta({
      description: "How far a value may move from the old one before its loss is clipped.",
    }),
    passes: Count.default(1).meta({ description: "Passes over each batch." }),
    ...adam,
  })
  .prefault({})
  .meta({ description: "Updates of the critic." });

const TRAINING = { description: "How the networks are updated." };

export const PpoTraining = z
  .strictObject({
    iterations: Numbered.meta({ description: "Iterations of the run." }),
    gamma: Share.default(1).meta({
      description: "Discount per sampled token. 1: an episode's reward counts the same for all its tokens.",
    }),
    lambda: Share.default(1).meta({
      description: "λ of generalised advantage estimation. 1: no bias from the critic.",
    }),
    truncation: z.enum(["terminal", "zero", "bootstrap"]).default("terminal").meta({
      description:
        "What an episode earns that ran out of turns or context. terminal: its reward (T1). zero: nothing, so that stopping in time is worth something. bootstrap: the critic's value at the cut instead of the reward.",
    }),
    lossMean: z.enum(["episode", "token"]).default("episode").meta({
      description:
        "episode: every episode weighs the same (T1). token: every sampled token weighs the same, so long episodes weigh more.",
    }),
    minibatches: Count.default(1).meta({ description: "Optimizer steps that a pass is cut into." }),
    replay: z
      .boolean()
      .default(true)
      .meta({ description: "Train under the experts that the sampler used (R3). Off only to compare." }),
    permuteRewards: z.boolean().default(false).meta({
      description:
        "Control run: the rewards of an iteration are handed to its episodes at random. Nothing can be learned from them, so any gain would be an artefact.",
    }),
    actor: Actor,
    critic: Critic,
  })
  .meta(TRAINING);

export const SftTraining = z
  .strictObject({
    iterations: Numbered.meta({
      description:
        "Iterations of the run. In sft each executes `rollout.episodes` demonstrations and trains on them.",
    }),
    passes: Count.default(1).meta({ description: "Passes over the demonstrations of an iteration." }),
    episodesPerStep: Count.default(16).meta({ description: "Demonstrations per optimizer step." }),
    learningRate: Rate.default(1e-3).meta({ description: "Peak of the schedule." }),
    warmupSteps: z.int().nonnegative().default(50).meta({ description: "Steps of linear rise." }),
    finalShare: Share.default(0.1).meta({
      description: "Share of the peak to which a cosine falls until the last step.",
    }),
    balanceFactor: z
      .number()
      .nonnegative()
      .default(0.01)
      .meta({ description: "Factor on the load-balancing loss of the experts." }),
    minReward: z.number().default(0).meta({
      description: "Demonstrations that earned less are not trained on. 0: all, mistakes included.",
    }),
    ...adam,
  })
  .meta(TRAINING);
