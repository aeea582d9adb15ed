import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Model, readModel } from "../../model/checkpoint.ts";
import { openLocalModel } from "../../model/model-folder.ts";
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

const model = await readModel(await openLocalModel(FOLDER), "language");

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

  it("gives the same whether a prompt is fed whole or in pieces: ids and routes equal, log-probs within 2e-5", async () => {
    // Room for 1,024 scores a head: pieces of 32 tokens at first, of 9 after 100 rows.
    const scoreBytes = 1024 * 4 * model.config.headCount;
    await using pieces = await Engine.open(model, 3, { threads: 2, cacheBytes: 1e9, scoreBytes });
    const random = new RandomStream(deriveSeed("long prompts"));
    const prompts = [110, 3, 70, 33, 32, 100].map(length =>
      Int32Array.from({ length }, () => random.integer(model.config.vocabSize)),
    );
    const ask = (engine: Engine) =>
      Promise.all(
        prompts.map(
          (tokens, index) =>
            engine.submit({
              ...{ tokens, routesHeld: 0, sampling: SAMPLING, stop: NO_STOP, maxNewTokens: 8 },
              seed: deriveSeed("pieces", index),
            }).generation,
        ),
      );
    const [whole, cut] = [await ask(engine), await ask(pieces)];
    whole.forEach(({ tokens, routes, logProbs }, index) => {
      expect(cut[index].tokens).toEqual(tokens);
      expect(cut[index].routes).toEqual(routes);
      logProbs.forEach((logProb, at) => {
        expect(Math.abs(cut[index].logProbs[at] - logProb)).toBeLessThan(2e-5);
      });
    });
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

  it.each<[string, object, RegExp]>([
    ["no token", { tokens: new Int32Array(0) }, /at least one token/],
    [
      "an id outside the vocabulary",
      { tokens: Int32Array.of(1, 1e6) },
      /expected ids below \d+, got 1000000/,
    ],
    ["a negative id", { tokens: Int32Array.of(-1) }, /got -1/],
    ["more tokens than the model has positions", { maxNewTokens: 1e6 }, /at most \d+ tokens in all/],
    ["one token more than the model has positions", { maxNewTokens: model.config.maxPositions }, /in all/],
    ["no new token", { maxNewTokens: 0 }, /max_new_tokens/],
    ["routes beyond the prompt", { routesHeld: 2 }, /routed_experts_start_len/],
    [
      "a temperature that is no number",
      { sampling: { ...SAMPLING, temperature: Number.NaN } },
      /temperature/,
    ],
    ["a top-p of 0", { sampling: { ...SAMPLING, topP: 0 } }, /top_p/],
  ])("refuses %s before it computes anything", async (_, change, reason) => {
    await expect(generate([1], 0, "refused", change)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(reason),
    });
  });

  it("answers up to the last position of the model", async () => {
    const room = model.config.maxPositions - 3;
    expect((await generate([1, 2, 3], 0, "all", { maxNewTokens: room })).tokens).toHaveLength(room);
  });
});

/** The token by which a test marks the request whose computation is to fail. */
const BAD = 77;

describe("an engine whose computation throws", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  async function open(): Promise<Engine> {
    const engine = await Engine.open(model, 3, { threads: 1, cacheBytes: 1e9 });
    onTestFinished(() => engine[Symbol.asyncDispose]());
    return engine;
  }

  /** Real computations, of which those that `isBad` knows throw, as they do when memory is short. */
  function failWhere(isBad: (tokens: readonly number[], batch: number) => boolean): void {
    const run = Session.prototype.run;
    vi.spyOn(Session.prototype, "run").mockImplementation(async function (this: Session, feeds: Feeds) {
      const { data, shape } = feeds.tokens;
      if (isBad(Array.from(data, Number), shape[0])) throw new Error("bad allocation");
      return run.call(this, feeds);
    });
  }

  const request = (tokens: readonly number[], seed: string, more = {}) => ({
    ...{ tokens: Int32Array.from(tokens), routesHeld: 0, sampling: SAMPLING, stop: NO_STOP, maxNewTokens: 6 },
    ...{ seed: deriveSeed(seed), ...more },
  });
  const all = (engine: Engine, requests: readonly ReturnType<typeof request>[]) =>
    Promise.allSettled(requests.map(one => engine.submit(one).generation));
  const tokensOf = (result: PromiseSettledResult<Generation> | undefined) =>
    result?.status === "fulfilled" ? [...result.value.tokens] : result?.reason.message;

  it("refuses the request that fails alone, and repeats and answers the others of its prefill", async () => {
    const engine = await open();
    const good = [1, 2, 3].map(id => request([id, id, id], `${id}`));
    const expected = (await all(engine, good)).map(tokensOf);
    failWhere(tokens => tokens.includes(BAD));
    const bad = request([BAD, 5, 5], "bad", { maxNewTokens: 1 });
    const results = await all(engine, [good[0], bad, good[1], good[2]]);
    expect(results.map(tokensOf)).toEqual([expected[0], "bad allocation", expected[1], expected[2]]);
    vi.restoreAllMocks();
    expect((await all(engine, good)).map(tokensOf)).toEqual(expected);
  });

  it("repeats the sequences of a failed decode step, each by itself, and answers as if nothing had been", async () => {
    const engine = await open();
    const requests = [1, 2, 3].map(id => request([id, id, id], `${id}`));
    const expected = (await all(engine, requests)).map(tokensOf);
    let failures = 0;
    failWhere((tokens, batch) => tokens.length === batch && batch > 1 && failures++ === 2);
    expect((await all(engine, requests)).map(tokensOf)).toEqual(expected);
    expect(failures).toBeGreaterThan(2);
    expect((await all(engine, requests)).map(tokensOf)).toEqual(expected);
  });

  it("refuses all where nothing can be computed, and answers when it can be again", async () => {
    const engine = await open();
    const requests = [1, 2, 3].map(id => request([id, id, id], `${id}`));
    const expected = (await all(engine, requests)).map(tokensOf);
    for (const isBad of [() => true, (tokens: readonly number[], batch: number) => tokens.length === batch]) {
      failWhere(isBad);
      expect((await all(engine, requests)).map(tokensOf)).toEqual(requests.map(() => "bad allocation"));
      vi.restoreAllMocks();
      expect((await all(engine, requests)).map(tokensOf)).toEqual(expected);
    }
  });

  it("hears a cancelled request also while it is repeated", async () => {
    const engine = await open();
    failWhere((_, batch) => batch > 1);
    const [one, two] = [1, 2].map(id => engine.submit(request([id, id], `${id}`, { maxNewTokens: 100 })));
    setTimeout(one.cancel, 5);
    await expect(one.generation).rejects.toMatchObject({ name: "AbortError" });
    expect((await two.generation).tokens).toHaveLength(100);
  });
});

describe("a policy whose numbers are none", () => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    "is refused by name and never sampled: a weight of %s",
    async value => {
      const parameters = new Map(model.parameters);
      const name = "model.norm.weight";
      const norm = parameters.get(name);
      if (norm === undefined) throw new Error(`no ${name}`);
      const broken = Float32Array.from(norm.data, (weight, at) => (at === 3 ? value : weight));
      parameters.set(name, { ...norm, data: broken });
      await using engine = await Engine.open({ ...model, parameters }, 3, { threads: 1, cacheBytes: 1e9 });
      const ask = (temperature: number) =>
        engine.submit({
          ...{ tokens: Int32Array.of(1, 2), routesHeld: 0, stop: NO_STOP, maxNewTokens: 4 },
          ...{ sampling: { ...SAMPLING, temperature }, seed: deriveSeed("x") },
        }).generation;
      for (const temperature of [0, 1])
        await expect(ask(temperature)).rejects.toMatchObject({
          ...{ name: "PolicyNotFinite", layer: "sampler", retryable: false },
          message: expect.stringMatching(/log-prob of token \d+ is NaN after 2 tokens/),
        });
      await engine.useWeights(model, 4);
      expect((await ask(1)).tokens).toHaveLength(4);
    },
  );
});
