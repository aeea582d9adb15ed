// The balance loss knows only real tokens of the whole batch: neither padding nor the split into micro-batches moves it.
import { expect, it } from "vitest";
import type { ModelConfig } from "../../model/config.ts";
import { type Parameters, randomParameters } from "../../model/parameters.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { microBatches } from "./micro-batch.ts";
import { Network, Sessions } from "./network.ts";
import { stepSft } from "./train-sft.ts";

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
  maxPositions: 128,
  tiedEmbeddings: false,
};
const STEP = { learningRate: 1, beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0, clipNorm: 1 };

it("trains the same whichever micro-batches a batch is cut into, with a balance loss that outweighs all else", async () => {
  const random = new RandomStream(deriveSeed("balance"));
  const parameters = randomParameters(CONFIG, random);
  await using sessions = new Sessions({ threads: 1 });
  // Lengths far apart: together the short ones are mostly padding.
  const chunks = [90, 17, 40, 5].map((length): Chunk => {
    const mask = Uint8Array.from({ length }, (_, t) => Number(t > 2));
    const tokens = Int32Array.from({ length }, () => random.integer(64));
    return { tokens, mask, logProbs: new Float32Array(length), turns: [] };
  });
  const alone = chunks.flatMap((_, index) =>
    microBatches([chunks[index]]).map(part => ({
      ...part,
      chunkIndices: [index],
      places: part.places.map(place => ({ ...place, chunk: index })),
    })),
  );
  const gradient = async (parts: ReturnType<typeof microBatches>): Promise<Parameters> => {
    const network = new Network({
      config: CONFIG,
      parameters: structuredClone(parameters),
      moments: new Map(),
      step: 0,
    });
    await stepSft(network, sessions, chunks, 100, parts);
    network.step(STEP);
    // After one step the first moment is the clipped gradient, times 0.1.
    return new Map(
      [...network.state.moments].map(([name, { first }]) => [name, { shape: [first.length], data: first }]),
    );
  };
  const together = await gradient(microBatches(chunks));
  expect(alone).toHaveLength(4);
  const apart = await gradient(alone);
  const router = together.get("model.layers.0.mlp.gate.weight")?.data ?? new Float32Array(1);
  expect(Math.hypot(...router)).toBeGreaterThan(1e-3);
  for (const [name, { data }] of together) {
    const other = apart.get(name)?.data ?? new Float32Array();
    const gap = data.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at])), 0);
    expect(gap, name).toBeLessThan(1e-6);
  }
});
