// Losses, advantages, statistics and AdamW against the `ppo` golden case (float64, test/fixtures/qwen3moe).
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeSafetensors } from "../../safetensors/format.ts";
import { tensorArray, tensorFloats } from "../../safetensors/numbers.ts";
import { adamWStep, clipCoefficient, globalNorm } from "../../tensor/adamw.ts";
import { gradients } from "../../tensor/backward.ts";
import { Graph } from "../../tensor/graph.ts";
import { matmul } from "../../tensor/linear.ts";
import { Session } from "../../tensor/session.ts";
import { gae, rewardsOf } from "../advantages.ts";
import { lossWeights } from "../loss-weights.ts";
import { explainedVariance, logProbMismatch } from "../statistics.ts";
import { clippedPolicyLoss, clippedValueLoss, scoreTokens } from "./losses.ts";

const PATH = `${import.meta.dirname}/../../../test/fixtures/qwen3moe/ppo/expected.safetensors`;
const golden = decodeSafetensors(readFileSync(PATH), PATH);
const f = (name: string): Float32Array => tensorFloats(golden, name).data;
const scalar = (name: string): number => tensorArray(golden, name, "F64").data[0];
const offsets = [...tensorArray(golden, "chunk_offsets", "I32").data];
const trialOf = [...tensorArray(golden, "chunk_trial", "I32").data];
const mask = Uint8Array.from(f("mask"));
const chunks = trialOf.map((trial, c) => ({ trial, start: offsets[c], end: offsets[c + 1] }));

/** Weights in row order. */
function rowWeights(mean: "token" | "episode"): Float32Array {
  const masks = chunks.map(({ start, end }) => mask.subarray(start, end));
  return Float32Array.from(lossWeights(masks, trialOf, mean).flatMap(weights => [...weights]));
}

async function losses(weights: Float32Array) {
  const graph = new Graph();
  const rows = mask.length;
  const [X, W, u] = [
    graph.input("X", [rows, 6]),
    graph.parameter("W", [6, 11]),
    graph.parameter("u", [6, 1]),
  ];
  const column = (name: string) => graph.input(name, [rows, 1]);
  const { logProbs, entropy } = scoreTokens(matmul(X, W), graph.input("tokens", [rows, 1], "i32"));
  const w = column("weights");
  const policy = clippedPolicyLoss(
    { logProbs, oldLogProbs: column("logp_old"), advantages: column("advantages"), weights: w },
    { ratio: "token", clip: { low: 0.2, high: 0.2 } },
    () => {
      throw new Error("a ratio of tokens asks for no chunks");
    },
  );
  const value = clippedValueLoss(matmul(X, u), column("values_old"), column("returns"), w, 0.2);
  const outputs = {
    policy,
    value,
    logp: logProbs,
    entropy,
    W: gradients(policy, [W])[0],
    u: gradients(value, [u])[0],
  };
  for (const [name, tensor] of Object.entries(outputs)) graph.output(name, tensor);
  await using session = await Session.open(graph, { threads: 1 });
  const feeds = Object.fromEntries(
    ["logp_old", "advantages", "values_old", "returns"].map(name => [
      name,
      { data: f(name), shape: [rows, 1] },
    ]),
  );
  return await session.run({
    ...feeds,
    X: { data: f("X"), shape: [rows, 6] },
    W: { data: f("W"), shape: [6, 11] },
    u: { data: f("u"), shape: [6, 1] },
    tokens: { data: tensorArray(golden, "tokens", "I32").data, shape: [rows, 1] },
    weights: { data: weights, shape: [rows, 1] },
  });
}

const close = (found: ArrayLike<number>, wanted: ArrayLike<number>, tolerance = 2e-6): void => {
  expect(found.length).toBe(wanted.length);
  for (let i = 0; i < wanted.length; i++)
    expect(Math.abs(found[i] - wanted[i]), `element ${i}`).toBeLessThan(tolerance);
};

describe("PPO golden case", () => {
  it.each([
    [1, 1, "advantages"],
    [0.99, 0.95, "advantages_g099_l095"],
  ])("gives the advantages for gamma %d and lambda %d; observations are no steps", (gamma, lambda, name) => {
    for (const { trial, start, end } of chunks) {
      const part = mask.subarray(start, end);
      const rewards = part.includes(1)
        ? rewardsOf(part, f("trial_reward")[trial])
        : new Float32Array(part.length);
      close(rewards, f("rewards").subarray(start, end));
      close(
        gae(rewards, f("values_old").subarray(start, end), part, { gamma, lambda, bootstrap: 0 }),
        f(name).subarray(start, end),
      );
    }
  });

  it("gives loss and gradient with the token mean", async () => {
    const out = await losses(rowWeights("token"));
    close(out.f32("policy").data, [scalar("policy_loss")]);
    close(out.f32("value").data, [scalar("value_loss")]);
    close(out.f32("logp").data, f("logp_new"));
    close(out.f32("W").data, f("grad.W"));
    close(out.f32("u").data, f("grad.u"));
  });

  it("gives loss and gradient with the episode mean (slime's trial mean)", async () => {
    const out = await losses(rowWeights("episode"));
    close(out.f32("policy").data, [scalar("policy_loss_trial_mean")]);
    close(out.f32("value").data, [scalar("value_loss_trial_mean")]);
    close(out.f32("W").data, f("grad_trial_mean.W"));
    close(out.f32("u").data, f("grad_trial_mean.u"));
  });

  it("gives gradients of micro-batches that add up to the batch's", async () => {
    const weights = rowWeights("token");
    const cut = offsets[2];
    const first = await losses(weights.map((w, row) => (row < cut ? w : 0)));
    const second = await losses(weights.map((w, row) => (row < cut ? 0 : w)));
    close(first.f32("W").data, f("grad_micro0.W"));
    close(second.f32("W").data, f("grad_micro1.W"));
    close(first.f32("u").data, f("grad_micro0.u"));
    close(second.f32("u").data, f("grad_micro1.u"));
  });

  it("takes AdamW steps as torch does, clipped and not", () => {
    const parameters = { W: f("W"), u: f("u") };
    const zero = (name: "W" | "u") => ({
      first: new Float32Array(parameters[name].length),
      second: new Float32Array(parameters[name].length),
    });
    const moments = { W: zero("W"), u: zero("u") };
    for (const step of [1, 2]) {
      const scale = scalar(`adam${step}.grad_scale`);
      const gradient = { W: f("grad.W").map(g => g * scale), u: f("grad.u").map(g => g * scale) };
      const norm = globalNorm(Object.values(gradient));
      const gradientScale = clipCoefficient(norm, 1);
      close([norm, gradientScale], [scalar(`adam${step}.grad_norm`), scalar(`adam${step}.clip_coef`)], 5e-6);
      for (const name of ["W", "u"] as const) {
        const settings = {
          learningRate: 1e-2,
          beta1: 0.9,
          beta2: 0.98,
          epsilon: 1e-8,
          weightDecay: name === "W" ? 0.1 : 0,
        };
        adamWStep(parameters[name], gradient[name], moments[name], { ...settings, step, gradientScale });
        close(parameters[name], f(`adam${step}.${name}`));
        close(moments[name].first, f(`adam${step}.m.${name}`));
        close(moments[name].second, f(`adam${step}.v.${name}`));
      }
    }
  });

  it("gives explained variance and |Δ log p| over the trainable tokens", () => {
    const trainable = (values: Float32Array): Float32Array => values.filter((_, row) => mask[row] === 1);
    const variance = explainedVariance(trainable(f("returns")), trainable(f("values_old")));
    close([variance ?? Number.NaN], [scalar("explained_variance")]);
    close([logProbMismatch(trainable(f("logp_new")), trainable(f("logp_old"))).mean], [scalar("abs_dlogp")]);
  });
});
