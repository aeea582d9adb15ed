// The value after a cut, which the critic gives in micro-batches: the same as in one graph, and what the advantages of
// PPO begin with.
import { expect, it } from "vitest";
import type { ModelConfig } from "../../model/config.ts";
import { buildPackedGraph, packedFeeds } from "../../model/packed-graph.ts";
import { packSequences } from "../../model/packing.ts";
import { criticFromActor, randomParameters } from "../../model/parameters.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { Session } from "../../tensor/session.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { scoreEnds } from "./critic.ts";
import { microBatches } from "./micro-batch.ts";
import { Network, Sessions } from "./network.ts";

const CONFIG: ModelConfig = {
  architecture: "qwen3_moe",
  vocabSize: 64,
  hiddenSize: 32,
  layerCount: 2,
  headCount: 2,
  keyValueHeadCount: 1,
  headDim: 16,
  intermediateSize: 64,
  experts: { count: 4, perToken: 2, intermediateSize: 32, normalizeGates: true, layers: [0, 1] },
  ropeTheta: 10_000,
  rmsNormEpsilon: 1e-6,
  maxPositions: 2048,
  tiedEmbeddings: false,
};

it("scores the ends of cut chunks in micro-batches as one graph would", async () => {
  const random = new RandomStream(deriveSeed("ends"));
  const parameters = criticFromActor(CONFIG, randomParameters(CONFIG, random));
  // A head of zeros would give zeros, whatever row is read.
  const head = parameters.get("value_head.weight")?.data ?? new Float32Array();
  head.forEach((_, at) => {
    head[at] = random.normal();
  });
  const chunks = [900, 40, 1100, 7, 1000, 700, 950, 300].map(
    (length): Chunk => ({
      tokens: Int32Array.from({ length }, () => random.integer(64)),
      mask: Uint8Array.from({ length }, (_, t) => t % 2),
      logProbs: new Float32Array(length),
      turns: [],
    }),
  );
  expect(microBatches(chunks, "end").length).toBeGreaterThan(1);
  await using sessions = new Sessions({ threads: 2 });
  const critic = new Network({ config: CONFIG, parameters, moments: new Map(), step: 0 });
  const ends = await scoreEnds(critic, sessions, chunks);

  const packed = packSequences(chunks.map(({ tokens }) => tokens));
  const rows = Int32Array.from(chunks, ({ tokens }, chunk) => packed.starts[chunk] + tokens.length - 1);
  const { graph, head: values } = buildPackedGraph(CONFIG, { head: "value", replay: false });
  graph.output("values", values);
  await using session = await Session.open(graph, { threads: 2 });
  const whole = await session.run({ ...Object.fromEntries(parameters), ...packedFeeds(packed, rows) });
  const wanted = whole.f32("values").data;
  expect(Math.max(...wanted) - Math.min(...wanted)).toBeGreaterThan(0.1);
  ends.forEach((value, chunk) => {
    expect(Math.abs(value - wanted[chunk]), `chunk ${chunk}`).toBeLessThan(1e-5);
  });
});
