// A batch that another policy sampled than the one that is trained: one-step asynchrony.
import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../model/config.ts";
import { criticFromActor, type Parameters, randomParameters } from "../../model/parameters.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { allocateRoutes } from "../../trajectory/routes.ts";
import type { PolicyMethod } from "../algorithms/algorithm.ts";
import { ppo } from "../algorithms/ppo.ts";
import { toBatch } from "../batch.ts";
import { Network, Sessions } from "./network.ts";
import { scorePolicy } from "./policy.ts";
import { trainPolicy } from "./train-policy.ts";

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
const METHOD = ppo.method({
  iterations: 1,
  lossMean: "token",
  actor: { learningRate: 1e-3, weightDecay: 0 },
  critic: { learningRate: 1e-3, weightDecay: 0, onlyIterations: 0 },
}) as PolicyMethod;

const network = (parameters: Parameters): Network =>
  new Network({ config: CONFIG, parameters: structuredClone(parameters), moments: new Map(), step: 0 });

/** Weights that are somewhat other ones, as after an update. */
function moved(parameters: Parameters, random: RandomStream): Parameters {
  const copy = structuredClone(parameters);
  for (const { data } of copy.values())
    for (let i = 0; i < data.length; i++) data[i] += 0.02 * random.normal();
  return copy;
}

describe("a batch of the policy before", () => {
  it("is trained against the policy that sampled it, and its mismatch holds none of what was trained since", async () => {
    const random = new RandomStream(deriveSeed("behaviour"));
    await using sessions = new Sessions({ threads: 1 });
    const sampler = randomParameters(CONFIG, random);
    const trained = moved(sampler, random);
    const routes = allocateRoutes(39, { layerCount: 2, expertsPerToken: 2, expertCount: 4 });
    for (let i = 0; i < routes.ids.length; i += 2) {
      routes.ids[i] = random.integer(2);
      routes.ids[i + 1] = 2 + random.integer(2);
    }
    const given: Chunk = {
      tokens: Int32Array.from({ length: 40 }, () => random.integer(64)),
      mask: Uint8Array.from({ length: 40 }, (_, t) => Number(t > 20)),
      logProbs: new Float32Array(40),
      routes,
      turns: [],
    };
    const { logProbs } = await scorePolicy(network(sampler), sessions, [given], {
      temperature: 1,
      replay: true,
    });
    const episode = {
      id: "0",
      task: "t",
      chunks: [{ ...given, logProbs: logProbs[0].map((value, t) => value * given.mask[t]) }],
      endReason: "completed" as const,
      reward: 1,
    };
    const train = async (behaviour?: Network) => {
      const critic = new Network({
        config: CONFIG,
        parameters: criticFromActor(CONFIG, sampler),
        moments: new Map(),
        step: 0,
      });
      const networks = { actor: network(trained), critic, behaviour };
      const metrics = await trainPolicy(toBatch([episode]), networks, {
        ...{ method: METHOD, iteration: 0, temperature: 1, sessions, seed: "s" },
      });
      return { metrics, behaviour: behaviour?.state.parameters };
    };

    const stale = await train(network(sampler));
    expect(stale.metrics["mismatch.replayed.mean"]).toBeLessThan(1e-6);
    expect(stale.metrics["policy.klToOld"]).toBeGreaterThan(1e-4);
    // It is only looked at.
    for (const [name, { data }] of stale.behaviour ?? []) expect(data).toEqual(sampler.get(name)?.data);

    const newest = await train();
    expect(newest.metrics["mismatch.replayed.mean"]).toBeGreaterThan(1e-3);
    expect(Math.abs(newest.metrics["policy.klToOld"] ?? 1)).toBeLessThan(1e-6);
  });
});
