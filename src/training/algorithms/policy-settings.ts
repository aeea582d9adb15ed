// Settings that the algorithms share which learn from the policy's own episodes.
import { z } from "zod";
import { Count, Numbered, Rate } from "../../settings/numbers.ts";
import { adam } from "../adam-settings.ts";

export const TRAINING = { description: "How the networks are updated." };

export const policySettings = {
  iterations: Numbered.meta({ description: "Iterations of the run." }),
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
};

export const TRUNCATION =
  "What an episode earns that ran out of turns or context. terminal: its reward (T1). zero: nothing, so that stopping in time is worth something.";

export const actorSettings = {
  learningRate: Rate.default(1e-6).meta({
    description: "Constant. 1e-6: T1, for 122 billion parameters; small models want 100 times as much.",
  }),
  passes: Count.default(1).meta({
    description: "Passes over each batch. 1: later passes train on the policy's past.",
  }),
  ...adam,
};
