// Supervised training on the answers of stored episodes.
import { buildPackedGraph, packedFeeds } from "../../model/packed-graph.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { add, mul } from "../../tensor/elementwise.ts";
import { reshape } from "../../tensor/shaping.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { lossWeights } from "../loss-weights.ts";
import { learningRate, type Schedule } from "../schedule.ts";
import { balanceLoss, meanOf, negativeLogLikelihood, scoreTokens } from "./losses.ts";
import { gatherRows, microBatches } from "./micro-batch.ts";
import { type Network, outputGradients, type Sessions, type StepSettings } from "./network.ts";

export interface SftSettings extends Omit<StepSettings, "learningRate"> {
  readonly schedule: Schedule;
  readonly episodesPerStep: number;
  readonly passes: number;
  /** Factor on the load-balancing loss, which keeps experts alive while routing is still random. */
  readonly balanceFactor: number;
}

export interface SftMetrics {
  readonly stepCount: number;
  readonly trainedTokenCount: number;
  /** Mean over the steps, nats per token. */
  readonly loss: number;
  /** Of the last tenth of the steps. */
  readonly lastLoss: number;
  readonly learningRate: number;
}

/** Trains in place. @param onStep called after each step, for progress */
export async function trainSft(
  chunks: readonly Chunk[],
  network: Network,
  { schedule, episodesPerStep, passes, balanceFactor, ...step }: SftSettings,
  {
    sessions,
    seed,
    onStep,
  }: {
    readonly sessions: Sessions;
    readonly seed: string;
    readonly onStep?: (done: number, total: number) => void;
  },
): Promise<SftMetrics> {
  const session = await sessions.get(`sft ${balanceFactor}`, network.config, () => {
    const { graph, head, parameters, model } = buildPackedGraph(network.config, {
      head: "language",
      replay: false,
    });
    const { logProbs } = scoreTokens(head, graph.input("targets", ["M", 1], "i32"));
    const likelihood = negativeLogLikelihood(logProbs, graph.input("weights", ["M", 1]));
    graph.output("loss", likelihood);
    const balances = model.routing.map(({ logits, routes }) => balanceLoss(logits, routes));
    const loss =
      balances.length === 0 ? likelihood : add(likelihood, mul(meanOf(balances), graph.input("balance", [])));
    outputGradients(graph, reshape(loss, []), parameters);
    return graph;
  });
  const random = new RandomStream(deriveSeed(seed, "sft"));
  const batches = Array.from({ length: passes }, () => likeLength(chunks, episodesPerStep, random)).flat();
  const losses: number[] = [];
  let rate = 0;
  for (const batch of batches) {
    const weights = lossWeights([batch.map(chunk => chunk.mask)], "token")[0];
    let loss = 0;
    const parts = microBatches(batch);
    for (const part of parts) {
      const outputs = await network.run(session, {
        ...packedFeeds(part.packed, part.rows),
        targets: { data: part.targets, shape: [part.targets.length, 1] },
        weights: gatherRows(part, weights),
        ...(network.config.experts && {
          balance: { data: Float32Array.of(balanceFactor / parts.length), shape: [] },
        }),
      });
      loss += outputs.f32("loss").data[0];
      network.accumulate(outputs);
    }
    rate = learningRate(network.state.step + 1, schedule);
    network.step({ ...step, learningRate: rate });
    losses.push(loss);
    onStep?.(losses.length, batches.length);
  }
  const lastTenth = losses.slice(-Math.ceil(losses.length / 10));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    stepCount: losses.length,
    trainedTokenCount:
      passes * chunks.reduce((sum, { mask }) => sum + mask.reduce((ones, bit) => ones + bit, 0), 0),
    loss: mean(losses),
    lastLoss: mean(lastTenth),
    learningRate: rate,
  };
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
