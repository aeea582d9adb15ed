// Supervised training on demonstrations that are executed in sandboxes; every task carries a demonstration.json.
import { z } from "zod";
import { Count, Numbered, Rate, Share } from "../../settings/numbers.ts";
import { adam } from "../adam-settings.ts";
import { algorithm } from "./algorithm.ts";
import { TRAINING } from "./policy-settings.ts";

export const sft = algorithm({
  name: "sft",
  says: "sft: supervised training on demonstrations that are executed in sandboxes; every task carries a demonstration.json.",
  learnsFrom: "demonstrations",
  settings: z
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
    .meta(TRAINING),
  use: settings => ({
    learnsFrom: "demonstrations",
    algorithm: "sft",
    groupSize: 1,
    settings,
    schedule: ({ episodes }) => {
      const { learningRate: peak, warmupSteps, finalShare, iterations, episodesPerStep, passes } = settings;
      const steps = Math.ceil(episodes / episodesPerStep) * passes;
      return { peak, warmupSteps, finalShare, decaySteps: steps * iterations };
    },
  }),
});
