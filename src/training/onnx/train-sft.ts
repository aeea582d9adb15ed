// Supervised training on the answers of stored episodes.
import { buildPackedGraph, packedFeeds } from "../../model/packed-graph.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { add, mul } from "../../tensor/elementwise.ts";
import type { Feeds } from "../../tensor/session.ts";
import { reshape } from "../../tensor/shaping.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import type { ImitationMethod } from "../algorithms/algorithm.ts";
import { lossWeights } from "../loss-weights.ts";
import type { Metrics } from "../metrics.ts";
import { learningRate, type Schedule } from "../schedule.ts";
import { mean } from "../statistics.ts";
import { balanceLoss, countChoices, meanOf, negativeLogLikelihood, scoreTokens } from "./losses.ts";
import { gatherRows, type MicroBatch, microBatches } from "./micro-batch.ts";
import { type Network, outputGradients, type Sessions } from "./network.ts";
import { assertUsable } from "./usable.ts";

export interface SftContext {
  readonly settings: ImitationMethod["settings"];
  readonly schedule: Schedule;
  readonly sessions: Sessions;
  readonly seed: string;
  readonly onStep?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Trains in place. @throws NotFinite */
export async function trainSft(
  chunks: readonly Chunk[],
  network: Network,
  { settings, schedule, sessions, seed, onStep, signal }: SftContext,
): Promise<Metrics> {
  const { episodesPerStep, passes, balanceFactor, ...step } = settings;
  const random = new RandomStream(deriveSeed(seed, "sft"));
  const batches = Array.from({ length: passes }, () => likeLength(chunks, episodesPerStep, random)).flat();
  const losses: number[] = [];
  let rate = 0;
  for (const batch of batches) {
    signal?.throwIfAborted();
    rate = learningRate(network.state.step + 1, schedule);
    losses.push(await stepSft(network, sessions, batch, balanceFactor));
    network.step({ ...step, learningRate: rate });
    onStep?.(losses.length, batches.length);
  }
  await assertUsable({ actor: network }, sessions, chunks, 1);
  return {
    "sft.steps": losses.length,
    "batch.tokens":
      passes * chunks.reduce((sum, { mask }) => sum + mask.reduce((ones, bit) => ones + bit, 0), 0),
    "sft.loss": mean(losses),
    "sft.lastLoss": mean(losses.slice(-Math.ceil(losses.length / 10))),
    "sft.learningRate": rate,
  };
}

/** Adds up the gradients of one batch. @returns its cross-entropy, nats per trainable token */
export async function stepSft(
  network: Network,
  sessions: Sessions,
  batch: readonly Chunk[],
  balanceFactor: number,
  parts: readonly MicroBatch[] = microBatches(batch),
): Promise<number> {
  const session = await sessions.get("train sft", network.config, () => {
    const { graph, head, parameters, model } = buildPackedGraph(network.config, {
      head: "language",
      replay: false,
    });
    const { logProbs } = scoreTokens(head, graph.input("targets", ["M", 1], "i32"));
    const likelihood = negativeLogLikelihood(logProbs, graph.input("weights", ["M", 1]));
    graph.output("loss", likelihood);
    if (model.routing.length === 0) {
      outputGradients(graph, reshape(likelihood, []), parameters);
      return graph;
    }
    const over = { isReal: graph.input("real", ["R*T", 1]), share: graph.input("share", []) };
    const balances = model.routing.map((routing, layer) => {
      const elsewhere = graph.input(`elsewhere.${layer}`, [1, Number(routing.logits.shape[1])]);
      return balanceLoss(routing, { ...over, elsewhere });
    });
    const balance = mul(meanOf(balances), graph.input("balance", []));
    outputGradients(graph, reshape(add(likelihood, balance), []), parameters);
    return graph;
  });
  const weights = lossWeights(
    batch.map(({ mask }) => mask),
    batch.map((_, chunk) => chunk),
    "token",
  );
  const balances = await balanceFeeds(network, sessions, parts, balanceFactor);
  let loss = 0;
  for (const [index, part] of parts.entries()) {
    const feeds = {
      ...packedFeeds(part.packed, part.rows),
      targets: { data: part.targets, shape: [part.targets.length, 1] },
      weights: gatherRows(part, weights),
      ...balances[index],
    };
    const outputs = await network.run(session, feeds, ["loss"]);
    loss += outputs.f32("loss").data[0];
    network.accumulate(outputs, feeds);
  }
  return loss;
}

/**
 * Per micro-batch, what the balance loss needs to know of the whole batch. Only a batch of several is run once more to
 * count the choices of its experts.
 */
async function balanceFeeds(
  network: Network,
  sessions: Sessions,
  parts: readonly MicroBatch[],
  balanceFactor: number,
): Promise<Feeds[]> {
  const { experts } = network.config;
  if (experts === undefined) return parts.map(() => ({}));
  const real = parts.map(({ packed: { segments } }) => ({
    data: Float32Array.from(segments, segment => Number(segment >= 0)),
    shape: [segments.length, 1],
  }));
  const tokens = real.reduce((sum, { data }) => sum + data.reduce((ones, bit) => ones + bit, 0), 0);
  const none = () => experts.layers.map(() => new Float32Array(experts.count));
  const counts = parts.length === 1 ? [none()] : await countParts(network, sessions, parts, real);
  return parts.map((_, part) => {
    const elsewhere = none();
    counts.forEach((layers, other) => {
      if (other === part) return;
      layers.forEach((layer, at) => {
        layer.forEach((count, expert) => {
          elsewhere[at][expert] += count;
        });
      });
    });
    return {
      real: real[part],
      share: { data: Float32Array.of(1 / tokens), shape: [] },
      balance: { data: Float32Array.of(balanceFactor), shape: [] },
      ...Object.fromEntries(
        elsewhere.map((data, layer) => [`elsewhere.${layer}`, { data, shape: [1, data.length] }]),
      ),
    };
  });
}

/** Per micro-batch and layer, how often each expert was chosen: whole numbers, so that their sum knows no order. */
async function countParts(
  network: Network,
  sessions: Sessions,
  parts: readonly MicroBatch[],
  real: readonly Feeds[string][],
): Promise<Float32Array[][]> {
  const session = await sessions.get("count choices", network.config, () => {
    const { graph, head, model } = buildPackedGraph(network.config, { head: "language", replay: false });
    const isReal = graph.input("real", ["R*T", 1]);
    for (const [layer, routing] of model.routing.entries())
      graph.output(`count.${layer}`, countChoices(routing, isReal));
    graph.output("head", head);
    return graph;
  });
  const counts: Float32Array[][] = [];
  for (const [index, part] of parts.entries()) {
    const feeds = { ...packedFeeds(part.packed, part.rows), real: real[index] };
    const outputs = await network.run(session, feeds, []);
    counts.push(network.config.experts?.layers.map((_, layer) => outputs.f32(`count.${layer}`).data) ?? []);
  }
  return counts;
}

/** How many batches are sorted by length together: enough to save padding, few enough to stay a shuffle. */
const BATCHES_SORTED_TOGETHER = 8;

/** A shuffled pass in batches of chunks of like length, the batches in random order. */
function likeLength(chunks: readonly Chunk[], size: number, random: RandomStream): Chunk[][] {
  const shuffled = random.shuffle(chunks);
  const batches: Chunk[][] = [];
  const span = size * BATCHES_SORTED_TOGETHER;
  for (let from = 0; from < shuffled.length; from += span) {
    const sorted = shuffled.slice(from, from + span).sort((a, b) => a.tokens.length - b.tokens.length);
    for (let at = 0; at < sorted.length; at += size) batches.push(sorted.slice(at, at + size));
  }
  return random.shuffle(batches);
}
