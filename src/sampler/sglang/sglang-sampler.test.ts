import { describe, expect, it, onTestFinished } from "vitest";
import { type FakeServer, json, startFake } from "../../../test/sampler/fake-sglang.ts";
import { deriveSeed } from "../../random/seed.ts";
import { computeReceipt } from "../../trajectory/receipt.ts";
import type { GenerateRequest } from "../sampler.ts";
import { SglangSampler, type SglangSettings } from "./sglang-sampler.ts";

const EXPERTS = { count: 8, perToken: 2, intermediateSize: 4, normalizeGates: true, layers: [1] };
const MODEL = { vocabSize: 100, layerCount: 2, experts: EXPERTS };
const STOP = 99;
const seed = deriveSeed("turn");
const REQUEST: GenerateRequest = {
  tokens: Int32Array.of(1, 2, 3),
  routesHeld: 1,
  sampling: { temperature: 0.5, topP: 0.9, topK: 0 },
  stop: [STOP],
  maxNewTokens: 4,
  seed,
  policy: { version: 7, prefix: "runs/x/policies/000007/" },
};

/** Three rows, [1, 4) of the five tokens: two hidden layers, the first without experts. */
const ROUTES = [
  [0, 0, 5, 1],
  [0, 0, 2, 3],
  [0, 0, 7, 0],
];
const base64 = (rows: readonly (readonly number[])[]) =>
  Buffer.from(Int32Array.from(rows.flat()).buffer).toString("base64");

const META = {
  id: "r",
  finish_reason: { type: "stop", matched: STOP },
  prompt_tokens: 3,
  completion_tokens: 2,
  cached_tokens: 0,
  weight_version: "7",
  output_token_logprobs: [
    [-0.25, 42, null],
    [-1.5, STOP, null],
  ],
  routed_experts: base64(ROUTES),
};
const pairs = (first: unknown) => [
  [first, 42, null],
  [-1.5, STOP, null],
];
const good = (changes: object = {}, ids = [42, STOP]) =>
  json({ text: "", output_ids: ids, meta_info: { ...META, ...changes } });

/** A response as Python writes it where a number is none. */
const textOfGood = (logProb: string) =>
  JSON.stringify({
    ...{ text: "", output_ids: [42, STOP] },
    meta_info: { ...META, output_token_logprobs: pairs("HERE") },
  }).replace('"HERE"', logProb);

function sampler(server: FakeServer | string, more: Partial<SglangSettings> = {}): SglangSampler {
  const url = typeof server === "string" ? server : server.url;
  const settings = { url, model: MODEL, modelPathOf: undefined, tries: 3, firstPauseMs: 1, connectMs: 2_000 };
  const made = new SglangSampler({ ...settings, ...more });
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

describe("client of SGLang", () => {
  it("asks in SGLang's words and reads its answer; the receipt of a server that makes none is made here, and said so", async () => {
    const server = await startFake({ "/generate": [good()] });
    const generation = await sampler(server).generate(REQUEST);
    expect(server.requests[0]?.body).toEqual({
      rid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      input_ids: [1, 2, 3],
      sampling_params: {
        ...{ max_new_tokens: 4, temperature: 0.5, top_p: 0.9, top_k: -1, stop_token_ids: [STOP] },
        sampling_seed: Number.parseInt(seed.slice(0, 12), 16),
        custom_params: { seed },
      },
      return_logprob: true,
      return_routed_experts: true,
      routed_experts_start_len: 1,
    });
    const routes = { rowCount: 3, layerCount: 1, expertsPerToken: 2, ids: Uint8Array.of(5, 1, 2, 3, 7, 0) };
    const turn = {
      sampled: Int32Array.of(42, STOP),
      logProbs: Float32Array.of(-0.25, -1.5),
      routes,
      policyVersion: 7,
    };
    expect(generation).toEqual({
      ...{ tokens: turn.sampled, logProbs: turn.logProbs, routes, finishReason: "stop", policyVersion: 7 },
      receipt: computeReceipt({ ...turn, prompt: REQUEST.tokens }),
      receiptMadeBy: "client",
    });
  });

  it("asks again under the same id and with the same seed, and takes no half answer", async () => {
    const server = await startFake({
      "/generate": [
        json({ error: { message: "busy" } }, 503),
        (_, response) => response.writeHead(200, { "content-length": "500" }).write("{"),
        (_, response) => void response.socket?.destroy(),
        good({ finish_reason: { type: "abort", message: "weights change" } }),
        (_, response) => void response.end("no json"),
        good({ t1_receipt: "0".repeat(64) }),
        good(),
      ],
    });
    const generation = await sampler(server, { tries: 7, answerMs: 1_500 }).generate(REQUEST);
    expect([...generation.tokens]).toEqual([42, STOP]);
    expect(server.requests).toHaveLength(7);
    expect(new Set(server.requests.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    const again = await sampler(server).generate(REQUEST);
    expect(again.tokens).toEqual(generation.tokens);
    expect(server.requests[7]?.body.rid).not.toBe(server.requests[6]?.body.rid);
  });

  it("gives up in the end as a Failure, which no policy can cause", async () => {
    const busy = await startFake({ "/generate": [json({ error: { message: "busy" } }, 503)] });
    const silent = await startFake({ "/generate": [() => {}] });
    for (const [one, reason] of [
      [sampler(busy), /did not answer in 3 tries: 503: busy/],
      [sampler(silent, { answerMs: 100 }), /no answer in 100 ms/],
      [sampler("http://127.0.0.1:9"), /ECONNREFUSED/],
    ] as const)
      await expect(one.generate(REQUEST)).rejects.toMatchObject({
        name: "SamplerUnavailable",
        retryable: true,
        message: expect.stringMatching(reason),
      });
    expect(busy.requests).toHaveLength(3);
  });

  it("does not repeat what the server refuses, and says why it does", async () => {
    const server = await startFake({ "/generate": [json({ error: { message: "too long" } }, 400)] });
    await expect(sampler(server).generate(REQUEST)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining("the sampler refuses the request: http://127.0.0.1"),
    });
    await expect(sampler(server).generate(REQUEST)).rejects.toThrow("400: too long");
    expect(server.requests).toHaveLength(2);
    await expect(sampler(server).generate(REQUEST)).rejects.not.toThrow("context");
    const locked = await startFake({ "/generate": [json({ detail: "Unauthorized" }, 401)] });
    await expect(sampler(locked).generate(REQUEST)).rejects.toThrow("does not let us in");
  });

  it.each([
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
    "Input is too long for requested model.",
    "prompt is too long: 5000 tokens > 4096 maximum",
  ])("knows a context that is too short, and says what to change (harbor#1619, #996): %s", async message => {
    const server = await startFake({ "/generate": [json({ error: { message } }, 400)] });
    await expect(sampler(server).generate(REQUEST)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/context is shorter than the run's.*400: .*\n {2}fix: .*contextTokens/),
    });
    expect(server.requests).toHaveLength(1);
  });

  it.each<[string, ReturnType<typeof good>, RegExp]>([
    ["no log-probs (slime#1995)", good({ output_token_logprobs: undefined }), /one log-prob for each/],
    [
      "the log-prob of the likeliest token instead (NeMo-RL#3297)",
      good({
        output_token_logprobs: [
          [-0.1, 5, null],
          [-1.5, STOP, null],
        ],
      }),
      /one log-prob for each/,
    ],
    ["a log-prob above 0", good({ output_token_logprobs: pairs(0.5) }), /log-probs of at most 0/],
    ["no routes", good({ routed_experts: null }), /no routed_experts.*\n.*--enable-return-routed-experts/],
    [
      "routes of the whole stream (verl#6029)",
      good({ routed_experts: base64([[0, 0, 1, 2], ...ROUTES]) }),
      /3 rows, 2 hidden layers and 2 experts of int32 have 48 bytes, got 64/,
    ],
    [
      "routes that were never captured (vllm-ascend#16314)",
      good({ routed_experts: base64([0, 0, 0].map(() => [0, 0, 0, 0])) }),
      /twice in a row/,
    ],
    [
      "no version",
      good({ weight_version: "default" }),
      /number of the policy as weight_version, got "default"/,
    ],
    [
      "a stop without its token",
      good({ output_token_logprobs: [[-0.25, 42, null]], routed_experts: base64(ROUTES.slice(0, 2)) }, [42]),
      /expected the stop token at the end/,
    ],
    [
      "routes of an expert that is not there",
      good({ routed_experts: base64([...ROUTES.slice(0, 2), [0, 0, 8, 0]]) }),
      /row 2, layer 1, column 0 names expert 8, expected 0 to 7/,
    ],
    ["more than was asked for", good({}, [1, 2, 3, 4, 5]), /expected 1 to 4 tokens, got 5/],
    ["ids of another model", good({}, [100, STOP]), /expected ids below 100/],
  ])("refuses an answer that cannot be trained on: %s", async (_, answer, reason) => {
    const server = await startFake({ "/generate": [answer] });
    const one = sampler(server);
    await expect(one.generate(REQUEST)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(reason),
    });
    expect(server.requests).toHaveLength(1);
  });

  it.each<[string, ReturnType<typeof good>, RegExp]>([
    ["null", good({ output_token_logprobs: pairs(null) }), /log-prob of token 0 is null/],
    ["below float32", good({ output_token_logprobs: pairs(-1e39) }), /log-prob of token 0 is -1e\+39/],
    ["a text", good({ output_token_logprobs: pairs("NaN") }), /log-prob of token 0 is "NaN"/],
    ...["NaN", "Infinity", "-Infinity", "-1e999"].map((text): [string, ReturnType<typeof good>, RegExp] => [
      text,
      (_, response) => void response.end(textOfGood(text)),
      /log-prob of token 0 is|the response contains -?(NaN|Infinity)/,
    ]),
    [
      "named by our server",
      json({ error: { type: "PolicyNotFinite", message: "log-prob of token 3 is NaN" } }, 422),
      /log-prob of token 3 is NaN/,
    ],
  ])(
    "refuses a policy whose log-probs are no numbers, by name and at once: %s",
    async (_, answer, reason) => {
      const server = await startFake({ "/generate": [answer] });
      await expect(sampler(server).generate(REQUEST)).rejects.toMatchObject({
        ...{ name: "PolicyNotFinite", retryable: false, message: expect.stringMatching(reason) },
      });
      expect(server.requests).toHaveLength(1);
    },
  );

  it("takes no answer from another policy", async () => {
    const server = await startFake({ "/generate": [good({ weight_version: "8" })] });
    await expect(sampler(server).generate(REQUEST)).rejects.toMatchObject({
      name: "SamplerUnavailable",
      message: expect.stringContaining("in 3 tries: answered from policy 8, asked for 7"),
    });
  });

  it("has the weights loaded once for all who ask, again after it failed, and by a folder where the server needs one", async () => {
    const server = await startFake({
      "/update_weights_from_disk": [
        json({ success: false, message: "no such path" }, 400),
        json({ success: true, message: "" }),
      ],
      "/generate": [good()],
    });
    const one = sampler(server, { modelPathOf: ({ version }) => `/models/${version}` });
    await expect(one.generate(REQUEST)).rejects.toThrow("400: no such path");
    await Promise.all([1, 2, 3].map(() => one.generate(REQUEST)));
    const updates = server.requests.filter(({ path }) => path === "/update_weights_from_disk");
    expect(updates.map(({ body }) => body)).toEqual([
      { model_path: "/models/7", weight_version: "7" },
      { model_path: "/models/7", weight_version: "7" },
    ]);
  });

  it("ends the connection of a request that its caller gives up, also while it waits to try again", async () => {
    const closed = Promise.withResolvers<void>();
    const server = await startFake({
      "/generate": [(_, response) => void response.once("close", () => closed.resolve()), json({}, 503)],
    });
    const leaving = new AbortController();
    const asked = sampler(server).generate({ ...REQUEST, signal: leaving.signal });
    setTimeout(() => leaving.abort(), 50);
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
    await closed.promise;
    const waiting = sampler(server, { firstPauseMs: 60_000 }).generate({
      ...REQUEST,
      signal: AbortSignal.timeout(100),
    });
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    const before = sampler(server).generate({ ...REQUEST, signal: AbortSignal.abort() });
    await expect(before).rejects.toMatchObject({ name: "AbortError" });
    expect(server.requests).toHaveLength(2);
  });
});
