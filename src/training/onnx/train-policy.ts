// One iteration on the policy's own episodes, in T1's order: old values, critic, then the actor against the old values.
// Everything here is a function of the batch, the networks, the method and the seed.
import { InvariantError } from "../../failure/errors.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import type { PolicyMethod, Surrogate } from "../algorithms/algorithm.ts";
import { type Batch, outcomeOf } from "../batch.ts";
import { lossWeights } from "../loss-weights.ts";
import type { Metrics } from "../metrics.ts";
import { minibatches } from "../minibatches.ts";
import { logProbMismatch, type Mismatch, mean, trainableOf } from "../statistics.ts";
import { scoreEnds, scoreValues, stepCritic } from "./critic.ts";
import { assertFinite } from "./finite.ts";
import type { Network, Sessions } from "./network.ts";
import { scorePolicy, stepPolicy } from "./policy.ts";
import { assertUsable } from "./usable.ts";

export interface PolicyNetworks {
  readonly actor: Network;
  /** Given when the method has one. */
  readonly critic?: Network | undefined;
  /** The policy that sampled the batch, where it is not the actor as it stands: one-step asynchrony. Stays as it is. */
  readonly behaviour?: Network | undefined;
}

export interface PolicyContext {
  readonly method: PolicyMethod;
  readonly iteration: number;
  readonly temperature: number;
  readonly sessions: Sessions;
  readonly seed: string;
  readonly onStep?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Updates actor and critic in place.
 *
 * @param batch audited: every receipt was compared with its tensors
 * @throws NotFinite
 */
export async function trainPolicy(
  batch: Batch,
  networks: PolicyNetworks,
  context: PolicyContext,
): Promise<Metrics> {
  const { method, iteration, sessions, temperature, onStep, signal } = context;
  const { lossMean, minibatches: count, actor } = method.settings;
  const replay = method.settings.replay && networks.actor.config.experts !== undefined;
  const { oldLogProbs, oldValues, advantages, returns, metrics } = await prepare(batch, networks, context);
  const random = new RandomStream(deriveSeed(context.seed, "minibatches"));
  const passes = method.passes(iteration);
  const total = (passes.critic + passes.actor) * Math.min(count, batch.episodes.length);
  let done = 0;
  /** Runs a step for each part of the batch, pass after pass. */
  const eachPart = async <T>(times: number, step: (take: Take, weights: Float32Array[]) => Promise<T>) => {
    const results: T[] = [];
    for (let pass = 0; pass < times; pass++) {
      for (const part of minibatches([...batch.episodes.keys()], count, random)) {
        signal?.throwIfAborted();
        const chunks = part.flatMap(episode => batch.chunksOf[episode]);
        const take: Take = perChunk => chunks.map(chunk => perChunk[chunk]);
        const masks = take(batch.chunks).map(({ mask }) => mask);
        results.push(await step(take, lossWeights(masks, take(batch.owners), lossMean)));
        onStep?.(++done, total);
      }
    }
    return results;
  };

  const criticSteps = await eachPart(passes.critic, (take, weights) => {
    if (networks.critic === undefined || method.critic === undefined)
      throw new InvariantError("passes of a critic that is not there", { algorithm: method.algorithm });
    const targets = { oldValues: take(oldValues), returns: take(returns), weights };
    return stepCritic(networks.critic, sessions, take(batch.chunks), targets, method.critic);
  });
  const actorSteps = await eachPart(passes.actor, async (take, weights) => {
    const chunks = take(batch.chunks);
    const targets = { oldLogProbs: take(oldLogProbs), advantages: take(advantages), weights };
    const options = { ...actor, surrogate: method.surrogate, temperature, replay };
    const step = await stepPolicy(networks.actor, sessions, chunks, targets, options);
    const masks = chunks.map(({ mask }) => mask);
    return { ...step, ...movement(masks, step.logProbs, targets.oldLogProbs, method.surrogate) };
  });
  await assertUsable(networks, sessions, batch.chunks, temperature);

  return {
    ...metrics,
    ...(criticSteps.length > 0 && {
      "critic.loss": mean(criticSteps.map(({ loss }) => loss)),
      "critic.gradientNorm": mean(criticSteps.map(({ gradientNorm }) => gradientNorm)),
    }),
    ...(actorSteps.length > 0 && {
      "policy.loss": mean(actorSteps.map(({ loss }) => loss)),
      "policy.gradientNorm": mean(actorSteps.map(({ gradientNorm }) => gradientNorm)),
      "policy.clipShare": mean(actorSteps.map(({ clipShare }) => clipShare)),
      "policy.klToOld": mean(actorSteps.map(({ kl }) => kl)),
    }),
  };
}

/** Picks what belongs to the chunks of a part. */
type Take = <T>(perChunk: readonly T[]) => T[];

/**
 * Old values, old log-probs and advantages of all chunks, and what is measured before the update. The old log-probs are
 * those of the policy that sampled, computed here: the denominator of the ratio (T1), and a mismatch in which no
 * training lies.
 */
async function prepare(
  batch: Batch,
  { actor, critic, behaviour = actor }: PolicyNetworks,
  { method, sessions, temperature }: PolicyContext,
) {
  const { chunks, episodes } = batch;
  const { settings } = method;
  for (const [index, { id, reward }] of episodes.entries()) {
    assertFinite(`reward of episode ${id}`, Float32Array.of(reward), "the batch was read");
    for (const chunk of batch.chunksOf[index])
      assertFinite(`log-probs of episode ${id}`, chunks[chunk].logProbs, "the batch was read");
  }
  const oldValues = critic === undefined ? [] : await scoreValues(critic, sessions, chunks);
  const replayed =
    behaviour.config.experts &&
    (await scorePolicy(behaviour, sessions, chunks, { temperature, replay: true }));
  const free = await scorePolicy(behaviour, sessions, chunks, { temperature, replay: false });
  const outcomes = episodes.map(episode => outcomeOf(episode, settings.truncation));
  const ends = episodes.map(() => 0);
  if (critic !== undefined) {
    const cut = [...episodes.keys()].filter(index => outcomes[index].bootstrap);
    const last = cut.map(index => chunks[batch.chunksOf[index][batch.chunksOf[index].length - 1]]);
    for (const [at, value] of (await scoreEnds(critic, sessions, last)).entries()) ends[cut[at]] = value;
  }
  const scores = critic === undefined ? undefined : { values: oldValues, ends };
  const { advantages, returns = [], metrics } = method.advantages(batch, scores);
  for (const [name, arrays] of Object.entries({ advantages, returns }))
    for (const array of arrays) assertFinite(name, array, `${method.algorithm} computed its targets`);
  const sampled = trainableOf(
    batch,
    chunks.map(chunk => chunk.logProbs),
  );
  return {
    oldLogProbs: (settings.replay && replayed ? replayed : free).logProbs,
    oldValues,
    advantages,
    returns,
    metrics: {
      ...metrics,
      "batch.episodes": episodes.length,
      "batch.tokens": sampled.length,
      "batch.meanReturn": mean(outcomes.map(outcome => outcome.reward)),
      ...(replayed &&
        mismatchOf("replayed", logProbMismatch(trainableOf(batch, replayed.logProbs), sampled))),
      ...mismatchOf("free", logProbMismatch(trainableOf(batch, free.logProbs), sampled)),
      "policy.entropy": mean(trainableOf(batch, (replayed ?? free).entropy)),
    } satisfies Metrics,
  };
}

function mismatchOf(how: "replayed" | "free", { mean, p99, max }: Mismatch): Metrics {
  return {
    [`mismatch.${how}.mean`]: mean,
    [`mismatch.${how}.p99`]: p99,
    [`mismatch.${how}.max`]: max,
  };
}

/** How far the policy is from the one that the old log-probs belong to, over the trainable tokens of a part. */
export function movement(
  masks: readonly Uint8Array[],
  logProbs: readonly Float32Array[],
  oldLogProbs: readonly Float32Array[],
  { ratio, clip }: Surrogate,
) {
  let tokens = 0;
  let clipped = 0;
  let kl = 0;
  masks.forEach((mask, chunk) => {
    const logRatios = [...mask.keys()]
      .filter(t => mask[t] === 1)
      .map(t => logProbs[chunk][t] - oldLogProbs[chunk][t]);
    const ofSequence = mean(logRatios);
    for (const logRatio of logRatios) {
      const change = Math.expm1(ratio === "token" ? logRatio : ofSequence);
      tokens++;
      if (change > clip.high || change < -clip.low) clipped++;
      kl += Math.expm1(logRatio) - logRatio;
    }
  });
  return { clipShare: clipped / tokens, kl: kl / tokens };
}
