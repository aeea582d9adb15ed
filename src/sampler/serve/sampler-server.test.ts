// The server's own work: what it refuses, who waits for what, and how it ends. The sampler behind it is a stand-in
// whose answers the test lets go; the real one passes its contract through the server in test/sampler.
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type StoredPolicies, storePolicies } from "../../../test/sampler/policies.ts";
import { routeLayout } from "../../model/routing.ts";
import { deriveSeed } from "../../random/seed.ts";
import { allocateRoutes } from "../../trajectory/routes.ts";
import type { GenerateRequest, Generation, Sampler } from "../sampler.ts";
import { SamplerServer, type ServeOptions } from "./sampler-server.ts";

let stored: StoredPolicies;
beforeAll(async () => {
  stored = await storePolicies();
});
afterAll(() => stored?.remove());

/** Holds every request but those of one token, by which the server tries new weights. */
class HeldSampler implements Sampler {
  readonly held: { readonly request: GenerateRequest; readonly letGo: () => void }[] = [];
  givenUp = 0;

  async generate(request: GenerateRequest): Promise<Generation> {
    if (request.tokens.length > 1)
      await new Promise<void>((resolve, reject) => {
        this.held.push({ request, letGo: resolve });
        request.signal?.addEventListener("abort", () => {
          this.givenUp++;
          reject(new DOMException("the caller gave up", "AbortError"));
        });
      });
    const rowCount = request.tokens.length + 1 - request.routesHeld;
    const layout = routeLayout(stored.model);
    return {
      ...{ tokens: Int32Array.of(4, 2), logProbs: Float32Array.of(-0.1, -1 / 3), finishReason: "length" },
      routes: layout && allocateRoutes(rowCount, layout),
      policyVersion: request.policy.version,
      receipt: new Uint8Array(32).fill(7),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

async function open(more: Partial<ServeOptions> = {}) {
  const sampler = new HeldSampler();
  const policy = stored.policies[0];
  const base = { sampler, store: stored.store, policy, host: "127.0.0.1", port: 0 };
  const server = await SamplerServer.open({ ...base, ...more });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(`${server.url}${path}`, { method: "POST", body: text, headers });
    return { status: response.status, body: (await response.json()) as Answer };
  };
  return { sampler, server, post };
}

interface Answer {
  readonly meta_info: { readonly weight_version: string };
}

const BODY = { input_ids: [1, 2, 3], return_logprob: true, return_routed_experts: true };

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(resolve => setTimeout(resolve, 5));
}

/** A request whose connection the test can end. */
function leaveable(server: SamplerServer, body: unknown) {
  const request = httpRequest(`${server.url}/generate`, { method: "POST" });
  request.on("error", () => {});
  request.end(JSON.stringify(body));
  return request;
}

describe("sampler server", () => {
  it("answers in SGLang's words", async () => {
    const { sampler, post } = await open();
    const asked = post("/generate", {
      ...BODY,
      rid: "turn-1",
      routed_experts_start_len: 2,
      sampling_params: {
        max_new_tokens: 2,
        temperature: 0.5,
        top_k: -1,
        stop_token_ids: [9],
        sampling_seed: 11,
      },
    });
    await until(() => sampler.held.length === 1);
    expect(sampler.held[0]?.request).toMatchObject({
      ...{ tokens: Int32Array.of(1, 2, 3), routesHeld: 2, stop: [9], maxNewTokens: 2 },
      ...{ sampling: { temperature: 0.5, topP: 1, topK: 0 }, policy: stored.policies[0] },
      seed: deriveSeed("sampling_seed", 11),
    });
    sampler.held[0]?.letGo();
    const { layerCount, experts } = stored.model;
    expect(await asked).toEqual({
      status: 200,
      body: {
        text: "",
        output_ids: [4, 2],
        meta_info: {
          ...{ id: "turn-1", finish_reason: { type: "length", length: 2 }, weight_version: "1" },
          ...{ prompt_tokens: 3, completion_tokens: 2 },
          output_token_logprobs: [
            [Math.fround(-0.1), 4, null],
            [Math.fround(-1 / 3), 2, null],
          ],
          routed_experts: Buffer.alloc(2 * layerCount * (experts?.perToken ?? 0) * 4).toString("base64"),
          t1_receipt: "07".repeat(32),
        },
      },
    });
  });

  it.each<[string, unknown, RegExp]>([
    ["no JSON", "{", /expected JSON/],
    ["no ids", {}, /input_ids/],
    ["an empty prompt", { input_ids: [] }, /input_ids/],
    ["text", { text: "hello" }, /text/],
    ["ids that are no integers", { input_ids: [1.5] }, /input_ids\.0/],
    ["negative ids", { input_ids: [-1] }, /input_ids\.0/],
    ["ids outside the vocabulary", { input_ids: [1e6] }, /expected ids below \d+, got 1000000/],
    ["stop ids outside it", { input_ids: [1], sampling_params: { stop_token_ids: [1e6] } }, /got 1000000/],
    [
      "more tokens than the model has positions",
      { input_ids: [1], sampling_params: { max_new_tokens: 1e9 } },
      /expected at most \d+ tokens in all/,
    ],
    ["no new token", { input_ids: [1], sampling_params: { max_new_tokens: 0 } }, /max_new_tokens/],
    ["a negative temperature", { input_ids: [1], sampling_params: { temperature: -1 } }, /temperature/],
    ["a top-p of 0", { input_ids: [1], sampling_params: { top_p: 0 } }, /top_p/],
    [
      "a seed that is none",
      { input_ids: [1], sampling_params: { custom_params: { seed: "x" } } },
      /custom_params\.seed/,
    ],
    [
      "routes from beyond the prompt",
      { input_ids: [1], routed_experts_start_len: 2 },
      /routed_experts_start_len/,
    ],
    ["streaming", { input_ids: [1], stream: true }, /stream/],
    [
      "a penalty, which would be ignored",
      { input_ids: [1], sampling_params: { frequency_penalty: 1 } },
      /frequency_penalty/,
    ],
    ["an option that nobody knows", { input_ids: [1], logit_bias: {} }, /logit_bias/],
    ["an id without end", { input_ids: [1], rid: "x".repeat(129) }, /rid/],
  ])("refuses %s, and says why", async (_, body, reason) => {
    const { sampler, post } = await open();
    const answer = await post("/generate", body);
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringMatching(reason) } },
    });
    expect(sampler.held).toEqual([]);
  });

  it("reads no body that is too large, announced or not", async () => {
    const { server, post } = await open({ maxBodyBytes: 1_000 });
    const large = { input_ids: Array.from({ length: 1_000 }, () => 1) };
    expect(await post("/generate", large)).toMatchObject({ status: 413 });
    const { port } = new URL(server.url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write("POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    socket.on("error", () => {});
    let answer = "";
    socket.on("data", chunk => {
      answer += chunk;
    });
    const writing = setInterval(() => socket.write(`100\r\n${" ".repeat(256)}\r\n`), 5);
    await once(socket, "close");
    clearInterval(writing);
    expect(answer).toMatch(/^HTTP\/1\.1 413/);
    expect((await post("/health", "{}")).status).toBe(404);
  });

  it("gives up what nobody waits for: the place of a driver that left is free", async () => {
    const { sampler, server } = await open();
    const request = leaveable(server, BODY);
    await until(() => sampler.held.length === 1);
    expect(server.running).toBe(1);
    request.destroy();
    await until(() => server.running === 0);
    expect(sampler.givenUp).toBe(1);
  });

  it("lets a driver that asks again under its id join the sampling, and then gives the same answer", async () => {
    const { sampler, server, post } = await open();
    const lost = leaveable(server, { ...BODY, rid: "a" });
    await until(() => sampler.held.length === 1);
    const asked = post("/generate", { ...BODY, rid: "a" });
    // Its own connection is open before the other one ends.
    await new Promise(resolve => setTimeout(resolve, 100));
    lost.destroy();
    await new Promise(resolve => setTimeout(resolve, 100));
    expect([sampler.givenUp, sampler.held.length]).toEqual([0, 1]);
    sampler.held[0]?.letGo();
    const answer = await asked;
    expect(answer.status).toBe(200);
    expect(await post("/generate", { ...BODY, rid: "a" })).toEqual(answer);
    expect(sampler.held).toHaveLength(1);
    const other = await post("/generate", { ...BODY, rid: "a", input_ids: [9, 9] });
    expect(other).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("two requests of one id") } },
    });
  });

  it("changes weights between answers, waits with new requests until then, and keeps the old ones where that fails", async () => {
    const { sampler, post } = await open();
    const [one, two] = stored.policies;
    const update = (prefix: string, version: string) =>
      post("/update_weights_from_disk", { model_path: prefix, weight_version: version });
    const before = post("/generate", BODY);
    await until(() => sampler.held.length === 1);
    expect(await update(two.prefix, "2")).toMatchObject({ status: 200, body: { success: true } });
    expect(await update(two.prefix, "2")).toMatchObject({ status: 200 });
    const after = post("/generate", BODY);
    await until(() => sampler.held.length === 2);
    for (const { letGo } of sampler.held) letGo();
    const versions = (await Promise.all([before, after])).map(({ body }) => body.meta_info.weight_version);
    expect(versions).toEqual(["1", "2"]);
    expect(await update("runs/demo/policies/000009/", "9")).toMatchObject({ status: 400 });
    expect(await update("../../etc", "9")).toMatchObject({ status: 400 });
    expect(await update(two.prefix, "3")).toMatchObject({ status: 400 });
    expect(await update(one.prefix, "latest")).toMatchObject({ status: 400 });
    const later = post("/generate", BODY);
    await until(() => sampler.held.length === 3);
    sampler.held[2]?.letGo();
    expect((await later).body.meta_info.weight_version).toBe("2");
  });

  it("is healthy once it has weights, and says which", async () => {
    const { server, post } = await open({ policy: undefined });
    expect((await fetch(`${server.url}/health`)).status).toBe(503);
    expect((await post("/generate", BODY)).status).toBe(503);
    const { prefix } = stored.policies[1];
    await post("/update_weights_from_disk", { model_path: prefix.slice(0, -1), weight_version: "2" });
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    const info = await (await fetch(`${server.url}/get_model_info`)).json();
    expect(info).toMatchObject({ model_path: prefix, weight_version: "2" });
  });

  it("lets nobody in without its key, but tells everybody whether it is healthy", async () => {
    const { server, post } = await open({ apiKey: "secret" });
    for (const authorization of ["", "Bearer wrong", "secret"])
      expect((await post("/abort_request", { abort_all: true }, { authorization })).status).toBe(401);
    expect(
      (await post("/abort_request", { abort_all: true }, { authorization: "Bearer secret" })).status,
    ).toBe(200);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  it("tells those that are too many to come again, and aborts what it is told to", async () => {
    const { sampler, post } = await open({ maxRunning: 1 });
    const first = post("/generate", { ...BODY, rid: "first" });
    await until(() => sampler.held.length === 1);
    expect((await post("/generate", BODY)).status).toBe(503);
    await post("/abort_request", { rid: "another" });
    expect(sampler.givenUp).toBe(0);
    await post("/abort_request", { rid: "first" });
    expect(await first).toMatchObject({ status: 503 });
  });

  it("drains: what is under way is answered, what is new is not taken, what takes too long is given up", async () => {
    const { sampler, server, post } = await open();
    const asked = post("/generate", BODY);
    await until(() => sampler.held.length === 1);
    const drained = server.drain(60_000);
    await expect(post("/generate", BODY)).rejects.toThrow();
    sampler.held[0]?.letGo();
    expect((await asked).status).toBe(200);
    await drained;

    const second = await open();
    const slow = second.post("/generate", BODY).catch(() => "cut off");
    await until(() => second.sampler.held.length === 1);
    await second.server.drain(50);
    expect(second.sampler.givenUp).toBe(1);
    await slow;
  });
});
