// The critic in training: values of stored chunks and steps of the clipped value loss. It always routes freely: recorded
// routes are the policy's.
import { buildPackedGraph, packedFeeds } from "../../model/packed-graph.ts";
import type { Tensor } from "../../tensor/graph.ts";
import type { Session } from "../../tensor/session.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import type { StepSettings } from "../adam-settings.ts";
import { clippedValueLoss } from "./losses.ts";
import { gatherRows, microBatches, scatterRows } from "./micro-batch.ts";
import { type Network, outputGradients, type Sessions } from "./network.ts";
import { NORM_SIZE, outputNormSize } from "./norm-sizes.ts";

/** Outputs of the graph that scores, all looked at. */
const VALUES = ["values", NORM_SIZE];

/** Per chunk [N]: V_t, the head's output at row t − 1, on trainable tokens; 0 elsewhere. */
export async function scoreValues(
  network: Network,
  sessions: Sessions,
  chunks: readonly Chunk[],
): Promise<Float32Array[]> {
  const session = await valueSession(network, sessions);
  const values = chunks.map(({ tokens }) => new Float32Array(tokens.length));
  for (const batch of microBatches(chunks)) {
    const outputs = await network.run(session, packedFeeds(batch.packed, batch.rows), VALUES);
    scatterRows(batch, outputs.f32("values").data, values);
  }
  return values;
}

/** V after the last token of each chunk (row N − 1): what a cut episode is worth from there on. */
export async function scoreEnds(
  network: Network,
  sessions: Sessions,
  chunks: readonly Chunk[],
): Promise<number[]> {
  const session = await valueSession(network, sessions);
  const ends = chunks.map(() => 0);
  for (const batch of microBatches(chunks, "end")) {
    const outputs = await network.run(session, packedFeeds(batch.packed, batch.rows), VALUES);
    const values = outputs.f32("values").data;
    batch.places.forEach(({ chunk }, row) => {
      ends[chunk] = values[row];
    });
  }
  return ends;
}

export interface CriticTargets {
  readonly oldValues: readonly Float32Array[];
  readonly returns: readonly Float32Array[];
  readonly weights: readonly Float32Array[];
}

/** One optimizer step of the clipped value loss over all given chunks. */
export async function stepCritic(
  network: Network,
  sessions: Sessions,
  chunks: readonly Chunk[],
  { oldValues, returns, weights }: CriticTargets,
  { clipRange, ...step }: StepSettings & { readonly clipRange: number },
): Promise<{ readonly loss: number; readonly gradientNorm: number }> {
  const session = await sessions.get(`train critic ${clipRange}`, network.config, () => {
    const { graph, head, parameters } = buildPackedGraph(network.config, { head: "value", replay: false });
    const column = (name: string): Tensor => graph.input(name, ["M", 1]);
    const loss = clippedValueLoss(
      head,
      column("values.old"),
      column("returns"),
      column("weights"),
      clipRange,
    );
    graph.output("loss", loss);
    outputGradients(graph, loss, parameters);
    return graph;
  });
  let loss = 0;
  for (const batch of microBatches(chunks)) {
    const feeds = {
      ...packedFeeds(batch.packed, batch.rows),
      "values.old": gatherRows(batch, oldValues),
      returns: gatherRows(batch, returns),
      weights: gatherRows(batch, weights),
    };
    const outputs = await network.run(session, feeds, ["loss"]);
    loss += outputs.f32("loss").data[0];
    network.accumulate(outputs, feeds);
  }
  return { loss, gradientNorm: network.step(step) };
}

function valueSession({ config }: Network, sessions: Sessions): Promise<Session> {
  return sessions.get("score values", config, () => {
    const { graph, head } = buildPackedGraph(config, { head: "value", replay: false });
    graph.output("values", head);
    outputNormSize(graph);
    return graph;
  });
}
