// Proximal policy optimisation with a critic of its own (arXiv 1707.06347), in T1's form (arXiv 2609.11042). A warm-up of
// a critic is a run of it on another pool, whose critic the next run starts from (`critic.from`).
import { z } from "zod";
import { InvariantError } from "../../failure/errors.ts";
import { ModelSource } from "../../settings/model-config.ts";
import { Count, Rate, Share } from "../../settings/numbers.ts";
import { adam } from "../adam-settings.ts";
import { gae, rewardsOf } from "../advantages.ts";
import { outcomeOf } from "../batch.ts";
import { explainedVariance, trainableOf } from "../statistics.ts";
import { algorithm } from "./algorithm.ts";
import { actorSettings, policySettings, TRAINING, TRUNCATION } from "./policy-settings.ts";

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

export const ppo = algorithm({
  name: "ppo",
  says: "ppo: advantages from a separate critic, clipped ratios of tokens (T1).",
  learnsFrom: "episodes",
  settings: z
    .strictObject({
      ...policySettings,
      gamma: Share.default(1).meta({
        description: "Discount per sampled token. 1: an episode's reward counts the same for all its tokens.",
      }),
      lambda: Share.default(1).meta({
        description: "λ of generalised advantage estimation. 1: no bias from the critic.",
      }),
      truncation: z
        .enum(["terminal", "zero", "bootstrap"])
        .default("terminal")
        .meta({
          description: `${TRUNCATION} bootstrap: the critic's value at the cut instead of the reward.`,
        }),
      actor: z
        .strictObject({
          clipRange: Rate.default(0.2).meta({ description: "ε of the clipped surrogate, on both sides." }),
          ...actorSettings,
        })
        .prefault({})
        .meta({ description: "Updates of the policy." }),
      critic: Critic,
    })
    .meta(TRAINING),
  use: settings => ({
    learnsFrom: "episodes",
    algorithm: "ppo",
    settings,
    surrogate: {
      ratio: "token",
      clip: { low: settings.actor.clipRange, high: settings.actor.clipRange },
    },
    critic: settings.critic,
    groupSize: 1,
    passes: iteration =>
      iteration < settings.critic.onlyIterations
        ? { actor: 0, critic: settings.critic.onlyPasses }
        : { actor: settings.actor.passes, critic: settings.critic.passes },
    advantages: (batch, scores) => {
      if (scores === undefined) throw new InvariantError("ppo without values of a critic");
      const { values, ends } = scores;
      const advantages = batch.chunks.map(({ mask }, chunk) => {
        const owner = batch.owners[chunk];
        const { reward } = outcomeOf(batch.episodes[owner], settings.truncation);
        return gae(rewardsOf(mask, reward), values[chunk], mask, { ...settings, bootstrap: ends[owner] });
      });
      const returns = advantages.map((own, chunk) =>
        own.map((advantage, t) => (batch.chunks[chunk].mask[t] === 1 ? advantage + values[chunk][t] : 0)),
      );
      const explained = explainedVariance(trainableOf(batch, returns), trainableOf(batch, values));
      return {
        advantages,
        returns,
        metrics: explained === undefined ? {} : { "critic.explainedVariance": explained },
      };
    },
  }),
});
