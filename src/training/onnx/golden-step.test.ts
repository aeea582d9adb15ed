// Whole optimizer steps of actor and critic against golden numbers (test/fixtures): packed rows, replayed
// routing, clipped losses, gradient clipping and AdamW.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readModel } from "../../model/checkpoint.ts";
import { openLocalModel } from "../../model/model-folder.ts";
import { buildPackedGraph, packedFeeds } from "../../model/packed-graph.ts";
import type { Head, Parameters } from "../../model/parameters.ts";
import { decodeSafetensors, type SafetensorsFile } from "../../safetensors/format.ts";
import { tensorArray, tensorFloats } from "../../safetensors/numbers.ts";
import type { Tensor } from "../../tensor/graph.ts";
import { type Feeds, Session } from "../../tensor/session.ts";
import { clippedPolicyLoss, clippedValueLoss, scoreTokens } from "./losses.ts";
import { Network, outputGradients } from "./network.ts";

const PPO_SURROGATE = { ratio: "token", clip: { low: 0.2, high: 0.2 } } as const;
const noChunks = (): never => {
  throw new Error("a ratio of tokens asks for no chunks");
};
const ADAM = { learningRate: 1e-3, beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0.1, clipNorm: 1 };

async function load(name: string) {
  const folder = `${import.meta.dirname}/../../../test/fixtures/${name}`;
  const model = await readModel(await openLocalModel(folder), "language");
  return { model, golden: decodeSafetensors(readFileSync(`${folder}/expected.safetensors`), name) };
}

/** Feeds of the golden batch: one row of packed sequences, every position wanted. */
function batchFeeds(golden: SafetensorsFile): Record<string, Feeds[string]> {
  const ids = tensorArray(golden, "input_ids", "I32");
  const [rowCount, rowLength] = ids.shape;
  const segments = tensorArray(golden, "segment_ids", "I32").data.map((id, place) =>
    id < 0 ? -1 - place : id,
  );
  const positions = BigInt64Array.from(tensorArray(golden, "position_ids", "I32").data, BigInt);
  const packed = { rowCount, rowLength, tokens: ids.data, positions, segments, starts: [] };
  const mask = tensorFloats(golden, "loss_mask").data;
  const sum = mask.reduce((total, m) => total + m, 0);
  return {
    ...packedFeeds(
      packed,
      Int32Array.from(ids.data, (_, row) => row),
    ),
    weights: { data: mask.map(m => m / sum), shape: [mask.length, 1] },
  };
}

const column = (golden: SafetensorsFile, name: string): Feeds[string] => {
  const { data } = tensorFloats(golden, name);
  return { data, shape: [data.length, 1] };
};

/** Runs one step through Network and compares loss, norm, gradients and new parameters. */
async function checkStep(
  golden: SafetensorsFile,
  parameters: Parameters,
  head: Head,
  name: string,
): Promise<void> {
  const { model } = await load(name);
  const replay = golden.tensors.has("replay_ids");
  const { graph, parameters: inputs, head: top } = buildPackedGraph(model.config, { head, replay });
  const input = (key: string): Tensor => graph.input(key, ["M", 1]);
  const feeds = batchFeeds(golden);
  let loss: Tensor;
  if (head === "language") {
    const { logProbs } = scoreTokens(top, graph.input("targets", ["M", 1], "i32"));
    const tokens = {
      logProbs,
      oldLogProbs: input("old"),
      advantages: input("advantages"),
      weights: input("weights"),
    };
    loss = clippedPolicyLoss(tokens, PPO_SURROGATE, noChunks);
    feeds.targets = { data: tensorArray(golden, "targets", "I32").data, shape: [feeds.rows.shape[0], 1] };
    Object.assign(feeds, { old: column(golden, "logp_old"), advantages: column(golden, "advantages") });
  } else {
    loss = clippedValueLoss(top, input("old"), input("returns"), input("weights"), 0.2);
    Object.assign(feeds, { old: column(golden, "values_old"), returns: column(golden, "returns") });
  }
  graph.output("loss", loss);
  outputGradients(graph, loss, inputs);
  const { experts } = model.config;
  if (replay && experts) {
    const { perToken: k, layers: moeLayers } = experts;
    const recorded = tensorArray(golden, "replay_ids", "I32").data;
    for (const [layer] of moeLayers.entries()) {
      const data = Int32Array.from(
        { length: recorded.length / moeLayers.length },
        (_, i) => recorded[(Math.floor(i / k) * moeLayers.length + layer) * k + (i % k)],
      );
      feeds[`routes.${layer}`] = { data, shape: [data.length / k, k] };
    }
  }
  const network = new Network({ config: model.config, parameters, moments: new Map(), step: 0 });
  await using session = await Session.open(graph, { threads: 2 });
  const outputs = await network.run(session, feeds, ["loss"]);
  expect(Math.abs(outputs.f32("loss").data[0] - tensorFloats(golden, "loss").data[0])).toBeLessThan(2e-5);
  for (const parameter of parameters.keys()) {
    const found = outputs.f32(`grad.${parameter}`).data;
    const wanted = tensorFloats(golden, `grad.${parameter}`).data;
    const scale = norm(wanted);
    const gap = norm(found.map((value, i) => value - wanted[i]));
    expect(gap, parameter).toBeLessThanOrEqual(scale < 1e-4 ? 1e-7 : 2e-5 * scale);
  }
  network.accumulate(outputs);
  const gradientNorm = network.step(ADAM);
  expect(Math.abs(gradientNorm - tensorFloats(golden, "grad_norm").data[0])).toBeLessThan(1e-4);
  const coefficient = tensorFloats(golden, "clip_coef").data[0];
  for (const [parameter, { data }] of network.state.parameters) {
    const gradient = tensorFloats(golden, `grad.${parameter}`).data;
    const wanted = tensorFloats(golden, `step1.${parameter}`).data;
    // Below this AdamW's first step is the sign of the gradient, which rounding decides.
    wanted.forEach((value, i) => {
      if (Math.abs(gradient[i]) * coefficient > 1e-6)
        expect(Math.abs(data[i] - value), `${parameter}[${i}]`).toBeLessThan(1e-6);
    });
  }
}

const norm = (values: Float32Array): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));

describe("golden optimizer step", () => {
  it("of the actor, under replayed routing", async () => {
    const { model, golden } = await load("qwen3moe/ppo_actor_step");
    await checkStep(golden, model.parameters, "language", "qwen3moe/ppo_actor_step");
  });

  it("of the actor of a dense model, which has no routes to replay", async () => {
    const { model, golden } = await load("qwen3/ppo_actor_step");
    await checkStep(golden, model.parameters, "language", "qwen3/ppo_actor_step");
  });

  it("of the critic, which routes freely", async () => {
    const { model, golden } = await load("qwen3moe/ppo_critic_step");
    const parameters = new Map(model.parameters);
    parameters.delete("lm_head.weight");
    parameters.set("value_head.weight", tensorFloats(golden, "value_head.weight"));
    await checkStep(golden, parameters, "value", "qwen3moe/ppo_critic_step");
  });
});
