// One PPO iteration over a closed batch, in T1's order: old values, critic, then the actor against the old values.
// Everything here is a function of the batch, the networks and the seed.
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { type AdvantageSettings, gae, rewardsOf } from "../advantages.ts";
import { outcomeOf, type TrainingEpisode, type Truncation } from "../episode.ts";
import { type LossMean, lossWeights } from "../loss-weights.ts";
import { minibatches } from "../minibatches.ts";
import { explainedVariance, logProbMismatch, type Mismatch } from "../statistics.ts";
import { scoreEnds, scoreValues, stepCritic } from "./critic.ts";
import type { Network, Sessions, StepSettings } from "./network.ts";
import { scorePolicy, stepPolicy } from "./policy.ts";

export interface PpoSettings extends AdvantageSettings {
  readonly temperature: number;
  readonly truncation: Truncation;
  readonly lossMean: LossMean;
  /** Optimizer steps that one pass over the batch is cut into. */
  readonly minibatchCount: number;
  /** Experts of the sampler (R3) in old log-probs and updates; false only for comparison. */
  readonly replay: boolean;
  readonly actor: StepSettings & { readonly clipRange: number; readonly passes: number };
  readonly critic: StepSettings & { readonly clipRange: number; readonly passes: number };
}

export interface PpoMetrics {
  readonly episodeCount: number;
  readonly trainedTokenCount: number;
  /** Of the reward trained on (after the truncation rule). */
  readonly meanReturn: number;
  /** Before the critic's update; undefined when all returns are equal. */
  readonly explainedVariance?: number;
  readonly valueLoss: number;
  readonly criticGradientNorm: number;
  /** |Δ log p| between trainer and sampler over the batch, before the update. */
  /** `replayed` is left out for a dense model, which has no routes to replay. */
  readonly mismatch: { readonly replayed?: Mismatch; readonly free: Mismatch };
  readonly entropy: number;
  /** Absent when passes is 0: the critic was trained alone. */
  readonly policy?: {
    readonly loss: number;
    readonly gradientNorm: number;
    readonly clipShare: number;
    /** Mean of ρ − 1 − log ρ against the old policy, nats per token. */
    readonly klToOld: number;
  };
}

interface Prepared {
  readonly chunk: Chunk;
  readonly episode: number;
  readonly oldLogProbs: Float32Array;
  readonly oldValues: Float32Array;
  readonly advantages: Float32Array;
  readonly returns: Float32Array;
}

export interface PpoNetworks {
  readonly actor: Network;
  readonly critic: Network;
  /** The policy that sampled the batch, where it is not the actor as it stands: one-step asynchrony. Stays as it is. */
  readonly behaviour?: Network | undefined;
}

/**
 * Updates actor and critic in place.
 *
 * @param episodes audited: every receipt was compared with its tensors
 */
export async function trainPpo(
  episodes: readonly TrainingEpisode[],
  networks: PpoNetworks,
  settings: PpoSettings,
  { sessions, seed }: { readonly sessions: Sessions; readonly seed: string },
): Promise<PpoMetrics> {
  const { actor, critic } = networks;
  const prepared = await prepare(episodes, networks, settings, sessions);
  const random = new RandomStream(deriveSeed(seed, "minibatches"));
  const parts = (): Prepared[][] => {
    const numbers = minibatches(
      [...new Set(prepared.items.map(item => item.episode))],
      settings.minibatchCount,
      random,
    );
    return numbers.map(part =>
      part.flatMap(episode => prepared.items.filter(item => item.episode === episode)),
    );
  };

  const criticSteps = [];
  for (let pass = 0; pass < settings.critic.passes; pass++) {
    for (const part of parts()) {
      const targets = {
        oldValues: part.map(p => p.oldValues),
        returns: part.map(p => p.returns),
        weights: weightsOf(part, settings.lossMean),
      };
      criticSteps.push(
        await stepCritic(
          critic,
          sessions,
          part.map(p => p.chunk),
          targets,
          settings.critic,
        ),
      );
    }
  }

  const actorSteps = [];
  for (let pass = 0; pass < settings.actor.passes; pass++) {
    for (const part of parts()) {
      const targets = {
        oldLogProbs: part.map(p => p.oldLogProbs),
        advantages: part.map(p => p.advantages),
        weights: weightsOf(part, settings.lossMean),
      };
      const replay = settings.replay && actor.config.experts !== undefined;
      const options = { ...settings.actor, temperature: settings.temperature, replay };
      const { logProbs, ...step } = await stepPolicy(
        actor,
        sessions,
        part.map(p => p.chunk),
        targets,
        options,
      );
      actorSteps.push({ ...step, ...movement(part, logProbs, settings.actor.clipRange) });
    }
  }

  return {
    ...prepared.metrics,
    valueLoss: mean(criticSteps.map(step => step.loss)),
    criticGradientNorm: mean(criticSteps.map(step => step.gradientNorm)),
    ...(actorSteps.length > 0 && {
      policy: {
        loss: mean(actorSteps.map(step => step.loss)),
        gradientNorm: mean(actorSteps.map(step => step.gradientNorm)),
        clipShare: mean(actorSteps.map(step => step.clipShare)),
        klToOld: mean(actorSteps.map(step => step.kl)),
      },
    }),
  };
}

/**
 * Old values, old log-probs and advantages of all chunks, and what is measured before the update. The old log-probs are
 * those of the policy that sampled, computed here: the denominator of the ratio (T1), and a mismatch in which no
 * training lies.
 */
async function prepare(
  episodes: readonly TrainingEpisode[],
  { actor, critic, behaviour = actor }: PpoNetworks,
  settings: PpoSettings,
  sessions: Sessions,
) {
  const owners = episodes.flatMap((episode, index) => episode.chunks.map(chunk => ({ chunk, index })));
  const chunks = owners.map(owner => owner.chunk);
  const { temperature, truncation } = settings;
  const oldValues = await scoreValues(critic, sessions, chunks);
  const replayed =
    behaviour.config.experts &&
    (await scorePolicy(behaviour, sessions, chunks, { temperature, replay: true }));
  const free = await scorePolicy(behaviour, sessions, chunks, { temperature, replay: false });
  const old = settings.replay && replayed ? replayed : free;
  const outcomes = episodes.map(episode => outcomeOf(episode, truncation));
  const cut = episodes.filter((episode, index) => outcomes[index].bootstrap && episode.chunks.length > 0);
  const ends = await scoreEnds(
    critic,
    sessions,
    cut.map(({ chunks: own }) => own[own.length - 1]),
  );
  const endValue = new Map(cut.map((episode, index) => [episode, ends[index]]));

  const items = owners.map(({ chunk, index }, at): Prepared => {
    const bootstrap = endValue.get(episodes[index]) ?? 0;
    const advantages = gae(rewardsOf(chunk.mask, outcomes[index].reward), oldValues[at], chunk.mask, {
      ...settings,
      bootstrap,
    });
    const returns = advantages.map((advantage, t) =>
      chunk.mask[t] === 1 ? advantage + oldValues[at][t] : 0,
    );
    return {
      chunk,
      episode: index,
      oldLogProbs: old.logProbs[at],
      oldValues: oldValues[at],
      advantages,
      returns,
    };
  });
  const trainable = (arrays: readonly Float32Array[]): Float32Array =>
    Float32Array.from(arrays.flatMap((array, at) => [...array.filter((_, t) => chunks[at].mask[t] === 1)]));
  const sampled = trainable(chunks.map(chunk => chunk.logProbs));
  return {
    items,
    metrics: {
      episodeCount: episodes.length,
      trainedTokenCount: sampled.length,
      meanReturn: mean(outcomes.map(outcome => outcome.reward)),
      explainedVariance: explainedVariance(trainable(items.map(item => item.returns)), trainable(oldValues)),
      mismatch: {
        ...(replayed && { replayed: logProbMismatch(trainable(replayed.logProbs), sampled) }),
        free: logProbMismatch(trainable(free.logProbs), sampled),
      },
      entropy: mean([...trainable((replayed ?? free).entropy)]),
    },
  };
}

function weightsOf(part: readonly Prepared[], lossMean: LossMean): Float32Array[] {
  const byEpisode = Map.groupBy(part, item => item.episode);
  const weights = lossWeights(
    [...byEpisode.values()].map(items => items.map(item => item.chunk.mask)),
    lossMean,
  );
  const byChunk = new Map(
    [...byEpisode.values()].flatMap((items, e) =>
      items.map((item, c) => [item.chunk, weights[e][c]] as const),
    ),
  );
  return part.map(item => byChunk.get(item.chunk) ?? new Float32Array(item.chunk.mask.length));
}

/** How far the policy is from the one that the old log-probs belong to, over the trainable tokens of a part. */
function movement(part: readonly Prepared[], logProbs: readonly Float32Array[], clipRange: number) {
  let tokens = 0;
  let clipped = 0;
  let kl = 0;
  part.forEach(({ chunk, oldLogProbs }, index) => {
    for (let t = 0; t < chunk.mask.length; t++) {
      if (chunk.mask[t] === 0) continue;
      const logRatio = logProbs[index][t] - oldLogProbs[t];
      tokens++;
      if (Math.abs(Math.expm1(logRatio)) > clipRange) clipped++;
      kl += Math.expm1(logRatio) - logRatio;
    }
  });
  return { clipShare: clipped / tokens, kl: kl / tokens };
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
