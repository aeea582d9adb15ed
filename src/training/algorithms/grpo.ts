// Group relative policy optimisation (DeepSeekMath, arXiv 2402.03300): PPO's surrogate without a critic. The KL term
// against a reference policy is left out, as DAPO (arXiv 2503.14476) and T1 leave it out.
import { z } from "zod";
import { Rate } from "../../settings/numbers.ts";
import { algorithm } from "./algorithm.ts";
import { groupAdvantages } from "./group-advantages.ts";
import { groupSettings } from "./group-settings.ts";
import { actorSettings, TRAINING } from "./policy-settings.ts";

export const grpo = algorithm({
  name: "grpo",
  says: "grpo: advantages from the other episodes of a task, clipped ratios of tokens; no critic.",
  learnsFrom: "episodes",
  settings: z
    .strictObject({
      ...groupSettings,
      actor: z
        .strictObject({
          clipLow: Rate.max(1).default(0.2).meta({
            description: "How far a token's ratio may fall below 1. 0.2: PPO, verl.",
          }),
          clipHigh: Rate.default(0.2).meta({
            description:
              "How far a token's ratio may rise above 1. 0.2: PPO, verl; DAPO has 0.28, which lets rare tokens grow.",
          }),
          ...actorSettings,
        })
        .prefault({})
        .meta({ description: "Updates of the policy." }),
    })
    .meta(TRAINING),
  use: settings => ({
    learnsFrom: "episodes",
    algorithm: "grpo",
    settings,
    surrogate: { ratio: "token", clip: { low: settings.actor.clipLow, high: settings.actor.clipHigh } },
    groupSize: settings.groupSize,
    passes: () => ({ actor: settings.actor.passes, critic: 0 }),
    advantages: batch => groupAdvantages(batch, settings),
  }),
});
