// ONNX Runtime may split a sum over threads. At the demo's real sizes the gradients must not depend on it: a race in
// one operator loses updates silently, and only at sizes that are worth splitting (onnxruntime#18048).
import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../model/config.ts";
import { parameterShapes, randomParameters } from "../../model/parameters.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { allocateRoutes } from "../../trajectory/routes.ts";
import { Network, Sessions } from "./network.ts";
import { stepPolicy } from "./policy.ts";

const CONFIG: ModelConfig = {
  architecture: "qwen3_moe",
  vocabSize: 512,
  hiddenSize: 128,
  layerCount: 4,
  headCount: 4,
  keyValueHeadCount: 2,
  headDim: 32,
  intermediateSize: 256,
  experts: { count: 8, perToken: 2, intermediateSize: 128, normalizeGates: true, layers: [0, 1, 2, 3] },
  ropeTheta: 10_000,
  rmsNormEpsilon: 1e-6,
  maxPositions: 512,
  tiedEmbeddings: false,
};

function randomChunk(length: number, random: RandomStream): Chunk {
  const layout = { layerCount: 4, expertsPerToken: 2, expertCount: 8 };
  const routes = allocateRoutes(length - 1, layout);
  for (let i = 0; i < routes.ids.length; i += 2) {
    routes.ids[i] = random.integer(4);
    routes.ids[i + 1] = 4 + random.integer(4);
  }
  const mask = Uint8Array.from({ length }, (_, t) => Number(t > 40 && t % 4 < 2));
  return {
    tokens: Int32Array.from({ length }, () => random.integer(512)),
    mask,
    logProbs: new Float32Array(length),
    routes,
    turns: [],
  };
}

async function stepWith(threads: number): Promise<Uint8Array[]> {
  const random = new RandomStream(deriveSeed("threads"));
  await using sessions = new Sessions({ threads });
  const network = new Network({
    config: CONFIG,
    parameters: randomParameters(CONFIG, random),
    moments: new Map(),
    step: 0,
  });
  const chunks = Array.from({ length: 32 }, () => randomChunk(70 + random.integer(80), random));
  const ofLength = (value: () => number) => chunks.map(({ tokens }) => Float32Array.from(tokens, value));
  const targets = {
    oldLogProbs: ofLength(() => -6.2 + 0.1 * random.normal()),
    advantages: ofLength(() => random.normal()),
    weights: ofLength(() => 1e-3),
  };
  const step = { learningRate: 1e-3, beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0.1, clipNorm: 1 };
  await stepPolicy(network, sessions, chunks, targets, {
    ...step,
    surrogate: { ratio: "token", clip: { low: 0.2, high: 0.2 } },
    temperature: 1,
    replay: true,
  });
  return [...network.state.parameters.values()].map(
    ({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  );
}

describe("a training step at the demo's size", () => {
  it("gives the same bytes on one thread and on two", async () => {
    const one = await stepWith(1);
    const two = await stepWith(2);
    expect(one.length).toBe(parameterShapes(CONFIG, "language").size);
    for (const [index, bytes] of one.entries()) expect(Buffer.compare(bytes, two[index])).toBe(0);
  });
});
