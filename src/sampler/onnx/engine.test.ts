import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeModelFiles, type Model } from "../../model/checkpoint.ts";
import { buildPackedGraph, packedFeeds } from "../../model/packed-graph.ts";
import { packSequences } from "../../model/packing.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { pickLast } from "../../tensor/indexing.ts";
import { logSoftmax } from "../../tensor/reductions.ts";
import { type Feeds, Session } from "../../tensor/session.ts";
import { computeReceipt } from "../../trajectory/receipt.ts";
import { concatRoutes } from "../../trajectory/routes.ts";
import type { Generation } from "../sampler.ts";
import { Engine } from "./engine.ts";

const FOLDER = `${import.meta.dirname}/../../../test/fixtures/qwen3moe/sparse_step2`;
const SAMPLING = { temperature: 1, topP: 1, topK: 0 };
const NO_STOP: readonly number[] = [];

function loadModel(): Model {
  const files = ["config.json", "model.safetensors"].map(
    name => [name, readFileSync(`${FOLDER}/${name}`)] as const,
  );
  return decodeModelFiles(new Map(files), "language", FOLDER);
}

/** Log-probs and routes of one stream under the training graph. */
async function score({ config, parameters }: Model, tokens: Int32Array, temperature: number) {
  const { graph, head, model } = buildPackedGraph(config, { head: "language", replay: false });
  const scaled = graph.node("Mul", [{ ...head, differentiable: false }, graph.scalar(1 / temperature)], {
    shape: head.shape,
  });
  graph.output("logp", pickLast(logSoftmax(scaled), graph.input("targets", ["M", 1], "i32")));
  model.routing.forEach(({ routes }, layer) => {
    graph.output(`routes.${layer}`, routes);
  });
  const fed = tokens.subarray(0, tokens.length - 1);
  const packed = packSequences([fed]);
  const feeds: Record<string, Feeds[string]> = {
    ...packedFeeds(
      packed,
      Int32Array.from(fed, (_, t) => t),
    ),
    targets: { data: tokens.slice(1), shape: [fed.length, 1] },
  };
  for (const [name, array] of parameters) feeds[name] = array;
  await using session = await Session.open(graph, { threads: 1 });
  const out = await session.run(feeds);
  return {
    logProbs: out.f32("logp").data,
    routes: (config.experts?.layers ?? []).map((_, l) => out.i32(`routes.${l}`).data),
  };
}

describe("sampling engine", () => {
  const model = loadModel();
  let engine: Engine;

  beforeAll(async () => {
    engine = await Engine.open(model, 3, { threads: 2, cacheBytes: 1e9 });
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  const generate = (tokens: number[], routesHeld: number, seed: string, extra = {}): Promise<Generation> =>
    engine.submit({
      tokens: Int32Array.from(tokens),
      routesHeld,
      sampling: SAMPLING,
      stop: NO_STOP,
      maxNewTokens: 6,
      seed: deriveSeed(seed),
      ...extra,
    }).generation;

  it("gives the log-probs and routes of the training graph, over turns, in a batch and at another temperature", async () => {
    const random = new RandomStream(deriveSeed("prompts"));
    const draw = (count: number): number[] =>
      Array.from({ length: count }, () => random.integer(model.config.vocabSize));
    const temperature = 0.7;
    await Promise.all(
      // Longer than the steps in which cache room grows, and of lengths that are not prefilled together.
      [3, 17, 70, 24, 1].map(async (promptLength, index) => {
        let stream = draw(promptLength);
        const pieces = [];
        let held = 0;
        const sampledAt: { readonly at: number; readonly generation: Generation }[] = [];
        for (let turn = 0; turn < 3; turn++) {
          const generation = await generate(stream, held, `${index}-${turn}`, {
            sampling: { temperature, topP: 1, topK: 0 },
          });
          sampledAt.push({ at: stream.length, generation });
          if (generation.routes) pieces.push(generation.routes);
          stream = [...stream, ...generation.tokens];
          held = stream.length - 1;
          if (turn < 2) stream.push(...draw(1 + index * 3));
        }
        const layout = { layerCount: 2, expertsPerToken: 2, expertCount: 8 };
        const routes = concatRoutes(pieces, layout);
        expect(routes.rowCount).toBe(stream.length - 1);
        const scored = await score(model, Int32Array.from(stream), temperature);
        for (const { at, generation } of sampledAt) {
          generation.logProbs.forEach((logProb, i) => {
            expect(Math.abs(logProb - scored.logProbs[at + i - 1])).toBeLessThan(2e-5);
          });
        }
        for (let row = 0; row < routes.rowCount; row++) {
          for (let layer = 0; layer < layout.layerCount; layer++) {
            const at = (row * layout.layerCount + layer) * 2;
            expect([...routes.ids.subarray(at, at + 2)]).toEqual([
              ...scored.routes[layer].subarray(row * 2, row * 2 + 2),
            ]);
          }
        }
      }),
    );
  });

  it("signs what it returns", async () => {
    const prompt = [5, 6, 7];
    const { tokens, logProbs, routes, receipt, policyVersion } = await generate(prompt, 0, "receipt");
    expect(policyVersion).toBe(3);
    const turn = { prompt: Int32Array.from(prompt), sampled: tokens, logProbs, routes, policyVersion };
    expect(computeReceipt(turn)).toEqual(receipt);
    expect(computeReceipt({ ...turn, policyVersion: 4 })).not.toEqual(receipt);
  });

  it("ends with a stop token, or says that the length ran out", async () => {
    const all = Array.from({ length: model.config.vocabSize }, (_, id) => id);
    const stopped = await generate([1, 2], 0, "stop", { stop: all });
    expect([stopped.finishReason, stopped.tokens.length]).toEqual(["stop", 1]);
    const cut = await generate([1, 2], 0, "length", { maxNewTokens: 4 });
    expect([cut.finishReason, cut.tokens.length]).toEqual(["length", 4]);
  });

  it("answers the same whether the cache of the last turn is still there or not", async () => {
    const forgetful = await Engine.open(model, 3, { threads: 1, cacheBytes: 0 });
    const first = await generate([9, 8, 7, 6], 0, "one");
    const next = [9, 8, 7, 6, ...first.tokens, 4, 4];
    const request = {
      sampling: SAMPLING,
      stop: NO_STOP,
      maxNewTokens: 5,
      seed: deriveSeed("two"),
      tokens: Int32Array.from(next),
      routesHeld: 9,
    };
    const cached = await engine.submit(request).generation;
    const again = await forgetful.submit(request).generation;
    expect(again.tokens).toEqual(cached.tokens);
    expect(again.routes).toEqual(cached.routes);
    await forgetful[Symbol.asyncDispose]();
  });

  it("gives up a cancelled request and still answers the others", async () => {
    const long = { maxNewTokens: 100 };
    const cancelled = engine.submit({
      tokens: Int32Array.of(1),
      routesHeld: 0,
      sampling: SAMPLING,
      stop: NO_STOP,
      seed: deriveSeed("c"),
      ...long,
    });
    const other = generate([2, 3], 0, "other", long);
    cancelled.cancel();
    await expect(cancelled.generation).rejects.toThrow("gave up");
    expect((await other).tokens.length).toBe(100);
  });
});
