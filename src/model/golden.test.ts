// The models against golden numbers of transformers, computed in float64 (make_fixtures.py beside the cases).
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeSafetensors, type SafetensorsFile } from "../safetensors/format.ts";
import { tensorArray, tensorFloats } from "../safetensors/numbers.ts";
import { gradients } from "../tensor/backward.ts";
import { mul, neg } from "../tensor/elementwise.ts";
import { pickLast } from "../tensor/indexing.ts";
import { logSoftmax, reduceSum } from "../tensor/reductions.ts";
import { type Feeds, Session } from "../tensor/session.ts";
import { parseModelConfig } from "./config.ts";
import { buildPackedGraph, packedFeeds } from "./packed-graph.ts";

const CASES = [
  "qwen3moe/base_norm",
  "qwen3moe/nonorm",
  "qwen3moe/sparse_step2",
  "qwen3moe/mlp_only",
  "qwen3moe/tied",
  "qwen3moe/packed",
  "qwen3moe/zero_experts",
  "qwen3moe/replay_norm",
  "qwen3moe/replay_nonorm",
  "qwen3/base",
  "qwen3/tied",
  "qwen3/packed",
] as const;

function load(name: string, file: string): SafetensorsFile {
  const path = `${import.meta.dirname}/../../test/fixtures/${name}/${file}`;
  return decodeSafetensors(readFileSync(path), path);
}

describe.each(CASES)("model on %s", name => {
  it("agrees with transformers in logits, log-probs, loss, routing and every gradient", async () => {
    const folder = `${import.meta.dirname}/../../test/fixtures/${name}`;
    const config = parseModelConfig(JSON.parse(readFileSync(`${folder}/config.json`, "utf8")), name);
    const weights = load(name, "model.safetensors");
    const golden = load(name, "expected.safetensors");
    const replay = golden.tensors.has("replay_ids");
    const { graph, parameters, head, model } = buildPackedGraph(config, { head: "language", replay });
    const logProbs = pickLast(logSoftmax(head), graph.input("targets", ["M", 1], "i32"));
    const weighted = mul(logProbs, graph.input("weights", ["M", 1]));
    const loss = neg(reduceSum(weighted, [0]));
    graph.output("logits", head);
    graph.output("logp", logProbs);
    graph.output("loss", loss);
    model.routing.forEach(({ routes, gates }, layer) => {
      graph.output(`routes.${layer}`, routes);
      graph.output(`gates.${layer}`, gates);
    });
    const names = [...parameters.keys()];
    gradients(loss, [...parameters.values()]).forEach((gradient, index) => {
      graph.output(`grad.${names[index]}`, gradient);
    });

    const ids = tensorArray(golden, "input_ids", "I32");
    const [rowCount, rowLength] = ids.shape;
    const size = rowCount * rowLength;
    const segments = tensorArray(golden, "segment_ids", "I32").data.map((id, place) =>
      id < 0 ? -1 - place : id,
    );
    const positions = BigInt64Array.from(tensorArray(golden, "position_ids", "I32").data, BigInt);
    const everyRow = Int32Array.from({ length: size }, (_, row) => row);
    const packed = { rowCount, rowLength, tokens: ids.data, positions, segments, starts: [] };
    const mask = tensorFloats(golden, "loss_mask").data;
    const maskSum = mask.reduce((sum, m) => sum + m, 0);
    const feeds: Record<string, Feeds[string]> = {
      ...packedFeeds(packed, everyRow),
      targets: { data: tensorArray(golden, "targets", "I32").data, shape: [size, 1] },
      weights: { data: mask.map(m => m / maskSum), shape: [size, 1] },
    };
    for (const parameter of names) feeds[parameter] = tensorFloats(weights, parameter);
    if (replay && config.experts) {
      const k = config.experts.perToken;
      const layers = config.experts.layers.length;
      const recorded = tensorArray(golden, "replay_ids", "I32").data;
      for (let layer = 0; layer < layers; layer++) {
        const rows = Int32Array.from(
          { length: size * k },
          (_, i) => recorded[(Math.floor(i / k) * layers + layer) * k + (i % k)],
        );
        feeds[`routes.${layer}`] = { data: rows, shape: [size, k] };
      }
    }

    await using session = await Session.open(graph, { threads: 2 });
    const out = await session.run(feeds);
    expect(largestGap(out.f32("logits").data, tensorFloats(golden, "logits").data)).toBeLessThan(2e-5);
    expect(largestGap(out.f32("logp").data, tensorFloats(golden, "logp").data)).toBeLessThan(2e-5);
    expect(largestGap(out.f32("loss").data, tensorFloats(golden, "loss").data)).toBeLessThan(2e-5);
    config.experts?.layers.forEach((layer, index) => {
      expect(out.i32(`routes.${index}`).data).toEqual(tensorArray(golden, `topk_ids.${layer}`, "I32").data);
      expect(
        largestGap(out.f32(`gates.${index}`).data, tensorFloats(golden, `gates.${layer}`).data),
      ).toBeLessThan(1e-6);
    });
    for (const parameter of names) {
      const found = out.f32(`grad.${parameter}`).data;
      const wanted = tensorFloats(golden, `grad.${parameter}`).data;
      const scale = norm(wanted);
      const gap = norm(found.map((value, i) => value - wanted[i]));
      if (scale === 0) expect(norm(found), parameter).toBe(0);
      else expect(gap, parameter).toBeLessThan(scale < 1e-4 ? 1e-7 : 2e-5 * scale);
    }
  });
});

function largestGap(a: Float32Array, b: Float32Array): number {
  expect(a.length).toBe(b.length);
  return a.reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i])), 0);
}

function norm(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}
