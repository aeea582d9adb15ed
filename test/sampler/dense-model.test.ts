// A dense model keeps the sampler's contract, in process and served; its answers have no routes.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { SamplerServer } from "../../src/sampler/serve/sampler-server.ts";
import { SglangSampler } from "../../src/sampler/sglang/sglang-sampler.ts";
import { expectEqual, samplerContract } from "../contracts/sampler.ts";
import { type StoredPolicies, storePolicies } from "./policies.ts";

let stored: StoredPolicies;
let inProcess: OnnxSampler;
let server: SamplerServer;
let client: SglangSampler;

beforeAll(async () => {
  stored = await storePolicies("qwen3/base");
  inProcess = new OnnxSampler({ threads: 1, cacheBytes: 1e8, storeUrl: stored.store.url });
  server = await SamplerServer.open({
    ...{ sampler: inProcess, store: stored.store, policy: stored.policies[0] },
    ...{ host: "127.0.0.1", port: 0 },
  });
  client = new SglangSampler({ url: server.url, model: stored.model });
}, 120_000);
afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  await inProcess?.[Symbol.asyncDispose]();
  await stored?.remove();
});

describe("sampler of a dense model", { timeout: 120_000 }, () => {
  describe("in process", () => {
    samplerContract(() => ({ ...stored, sampler: inProcess, second: inProcess }));
  });

  describe("served", () => {
    samplerContract(() => ({ ...stored, sampler: client, second: client }));
  });

  it("gives no routes, and the server's receipt covers that", async () => {
    const request = {
      ...{ tokens: Int32Array.of(3, 1, 2), routesHeld: 0, stop: [], maxNewTokens: 9 },
      ...{ sampling: { temperature: 0.7, topP: 1, topK: 0 }, seed: "1".repeat(32) },
      policy: stored.policies[0],
    };
    const here = await inProcess.generate(request);
    const there = await client.generate(request);
    expectEqual(there, here);
    expect([here.routes, there.routes, there.receiptMadeBy]).toEqual([undefined, undefined, "server"]);
  });
});
