// Group sequence policy optimisation (arXiv 2507.18071): the ratio is the sequence's, normalised by its length, so that
// one clip decides for a whole sequence (equations 5 to 7). A sequence is a chunk: the sampled tokens of one context.
import { z } from "zod";
import { Rate } from "../../settings/numbers.ts";
import { algorithm } from "./algorithm.ts";
import { groupAdvantages } from "./group-advantages.ts";
import { groupSettings } from "./group-settings.ts";
import { actorSettings, TRAINING } from "./policy-settings.ts";

export const gspo = algorithm({
  name: "gspo",
  says: "gspo: advantages from the other episodes of a task, clipped ratios of whole sequences; no critic.",
  learnsFrom: "episodes",
  settings: z
    .strictObject({
      ...groupSettings,
      actor: z
        .strictObject({
          clipLow: Rate.max(1).default(3e-4).meta({
            description:
              "How far a sequence's ratio may fall below 1. 3e-4: the paper, section 5.1; a mean over hundreds of tokens moves far less than one token.",
          }),
          clipHigh: Rate.default(4e-4).meta({
            description: "How far a sequence's ratio may rise above 1. 4e-4: the paper, section 5.1.",
          }),
          ...actorSettings,
        })
        .prefault({})
        .meta({ description: "Updates of the policy." }),
    })
    .meta(TRAINING),
  use: settings => ({
    learnsFrom: "episodes",
    algorithm: "gspo",
    settings,
    surrogate: { ratio: "sequence", clip: { low: settings.actor.clipLow, high: settings.actor.clipHigh } },
    groupSize: settings.groupSize,
    passes: () => ({ actor: settings.actor.passes, critic: 0 }),
    advantages: batch => groupAdvantages(batch, settings),
  }),
});
