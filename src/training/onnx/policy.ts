// The policy in training: its log-probs under replayed or free routing, and steps of the clipped surrogate.
import { InvariantError } from "../../failure/errors.ts";
import type { ModelConfig } from "../../model/config.ts";
import { buildPackedGraph, packedFeeds, routeFeeds } from "../../model/packed-graph.ts";
import { mul } from "../../tensor/elementwise.ts";
import type { Graph, Tensor } from "../../tensor/graph.ts";
import type { Feeds } from "../../tensor/session.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import type { StepSettings } from "../adam-settings.ts";
import type { Surrogate } from "../algorithms/algorithm.ts";
import { clippedPolicyLoss, scoreTokens } from "./losses.ts";
import { chunkFeeds, gatherRows, type MicroBatch, microBatches, scatterRows } from "./micro-batch.ts";
import { type Network, outputGradients, type Sessions } from "./network.ts";
import { NORM_SIZE, outputNormSize } from "./norm-sizes.ts";

export interface PolicyScores {
  /** Per chunk [N]: log π of each trainable token at the sampling temperature, 0 elsewhere; nats. */
  readonly logProbs: readonly Float32Array[];
  /** Per chunk [N]: entropy of the distribution each trainable token was drawn from; nats. */
  readonly entropy: readonly Float32Array[];
}

export interface ScoreOptions {
  readonly temperature: number;
  /** Experts as recorded (R3), with gates from the live router; else routed anew. */
  readonly replay: boolean;
}

/** Scores stored chunks under the current weights. */
export async function scorePolicy(
  network: Network,
  sessions: Sessions,
  chunks: readonly Chunk[],
  { temperature, replay }: ScoreOptions,
): Promise<PolicyScores> {
  const session = await sessions.get(`score policy, ${replay ? "replayed" : "free"}`, network.config, () => {
    const { graph, logProbs, entropy } = policyGraph(network, replay);
    graph.output("log.probs", logProbs);
    graph.output("entropy", entropy);
    outputNormSize(graph);
    return graph;
  });
  const scores = { logProbs: chunks.map(emptyRow), entropy: chunks.map(emptyRow) };
  for (const batch of microBatches(chunks)) {
    const feeds = policyFeeds(network, batch, chunks, { temperature, replay });
    const outputs = await network.run(session, feeds, ["log.probs", "entropy", NORM_SIZE]);
    scatterRows(batch, outputs.f32("log.probs").data, scores.logProbs);
    scatterRows(batch, outputs.f32("entropy").data, scores.entropy);
  }
  return scores;
}

/** What one step needs per chunk, each [N]. */
export interface PolicyTargets {
  readonly oldLogProbs: readonly Float32Array[];
  readonly advantages: readonly Float32Array[];
  readonly weights: readonly Float32Array[];
}

export interface PolicyStepOptions extends StepSettings, ScoreOptions {
  readonly surrogate: Surrogate;
}

/** One optimizer step of the clipped surrogate over all given chunks. */
export async function stepPolicy(
  network: Network,
  sessions: Sessions,
  chunks: readonly Chunk[],
  { oldLogProbs, advantages, weights }: PolicyTargets,
  { surrogate, temperature, replay, ...step }: PolicyStepOptions,
): Promise<{
  readonly loss: number;
  readonly gradientNorm: number;
  readonly logProbs: readonly Float32Array[];
}> {
  const name = `train policy ${JSON.stringify(surrogate)}, ${replay ? "replayed" : "free"}`;
  const session = await sessions.get(name, network.config, () => {
    const { graph, logProbs, parameters } = policyGraph(network, replay);
    const column = (input: string): Tensor => graph.input(input, ["M", 1]);
    const tokens = {
      logProbs,
      oldLogProbs: column("log.probs.old"),
      advantages: column("advantages"),
      weights: column("weights"),
    };
    const loss = clippedPolicyLoss(tokens, surrogate, () => ({
      means: graph.input("chunk.means", ["S", "M"]),
      members: graph.input("chunk.members", ["M", "S"]),
    }));
    graph.output("log.probs", logProbs);
    graph.output("loss", loss);
    outputGradients(graph, loss, parameters);
    return graph;
  });
  let loss = 0;
  const logProbs = chunks.map(emptyRow);
  for (const batch of microBatches(chunks)) {
    const feeds = {
      ...policyFeeds(network, batch, chunks, { temperature, replay }),
      ...(surrogate.ratio === "sequence" && chunkFeeds(batch)),
      "log.probs.old": gatherRows(batch, oldLogProbs),
      advantages: gatherRows(batch, advantages),
      weights: gatherRows(batch, weights),
    };
    const outputs = await network.run(session, feeds, ["log.probs", "loss"]);
    loss += outputs.f32("loss").data[0];
    scatterRows(batch, outputs.f32("log.probs").data, logProbs);
    network.accumulate(outputs, feeds);
  }
  return { loss, gradientNorm: network.step(step), logProbs };
}

function policyGraph(
  { config }: Network,
  replay: boolean,
): { graph: Graph; logProbs: Tensor; entropy: Tensor; parameters: ReadonlyMap<string, Tensor> } {
  const { graph, head, parameters } = buildPackedGraph(config, { head: "language", replay });
  const logits = mul(head, graph.input("inverse.temperature", []));
  return { graph, parameters, ...scoreTokens(logits, graph.input("targets", ["M", 1], "i32")) };
}

function policyFeeds(
  { config }: Network,
  batch: MicroBatch,
  chunks: readonly Chunk[],
  { temperature, replay }: ScoreOptions,
): Feeds {
  return {
    ...packedFeeds(batch.packed, batch.rows),
    ...(replay && replayFeeds(config, batch, chunks)),
    targets: { data: batch.targets, shape: [batch.targets.length, 1] },
    "inverse.temperature": { data: Float32Array.of(1 / temperature), shape: [] },
  };
}

function replayFeeds({ experts }: ModelConfig, batch: MicroBatch, chunks: readonly Chunk[]): Feeds {
  const routes = batch.chunkIndices.map(index => chunks[index].routes?.ids);
  if (experts === undefined || !routes.every(ids => ids !== undefined))
    throw new InvariantError("nothing to replay: the model has no experts, or a chunk no routes");
  return routeFeeds(batch.packed, routes, experts);
}

function emptyRow({ tokens }: Chunk): Float32Array {
  return new Float32Array(tokens.length);
}
