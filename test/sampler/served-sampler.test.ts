import { once } from "node:events";
import { connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { SamplerServer } from "../../src/sampler/serve/sampler-server.ts";
import { SglangSampler } from "../../src/sampler/sglang/sglang-sampler.ts";
import { expectEqual, samplerContract } from "../contracts/sampler.ts";
import { type StoredPolicies, storePolicies } from "./policies.ts";

const SETTINGS = { threads: 1, cacheBytes: 1e8 };
let stored: StoredPolicies;
let inProcess: OnnxSampler;
/** Behind the server: another engine than the one in process, so that equal answers are no coincidence of caches. */
let behind: OnnxSampler;
let server: SamplerServer;

beforeAll(async () => {
  stored = await storePolicies();
  const settings = { ...SETTINGS, storeUrl: stored.store.url };
  inProcess = new OnnxSampler(settings);
  behind = new OnnxSampler(settings);
  server = await SamplerServer.open({
    ...{ sampler: behind, store: stored.store, policy: stored.policies[0] },
    ...{ host: "127.0.0.1", port: 0 },
  });
}, 120_000);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await behind?.[Symbol.asyncDispose]();
  await inProcess?.[Symbol.asyncDispose]();
  await stored?.remove();
});

function client(more = {}): SglangSampler {
  return new SglangSampler({ url: server.url, model: stored.model, ...more });
}

describe("sampler in process", { timeout: 120_000 }, () => {
  samplerContract(() => ({ ...stored, sampler: inProcess, second: inProcess }));
});

describe("served sampler", { timeout: 120_000 }, () => {
  let one: SglangSampler;
  let two: SglangSampler;
  beforeAll(() => {
    one = client();
    two = client();
  });
  afterAll(async () => {
    await one[Symbol.asyncDispose]();
    await two[Symbol.asyncDispose]();
  });

  samplerContract(() => ({ ...stored, sampler: one, second: two }));

  it("gives what the sampler in process gives, bit for bit, over the turns of an episode", async () => {
    let tokens = Int32Array.of(3, 1, 2);
    let routesHeld = 0;
    for (let turn = 0; turn < 3; turn++) {
      const request = {
        ...{
          tokens,
          routesHeld,
          sampling: { temperature: 0.7, topP: 1, topK: 0 },
          stop: [],
          maxNewTokens: 9,
        },
        ...{ seed: `${turn}`.repeat(32), policy: stored.policies[turn === 1 ? 1 : 0] },
      };
      const here = await inProcess.generate(request);
      const there = await one.generate(request);
      expectEqual(there, here);
      expect(there.receiptMadeBy).toBe("server");
      tokens = Int32Array.from([...tokens, ...here.tokens, 4, 5]);
      routesHeld = tokens.length - 3;
    }
  });

  it("gives what was asked for, however many servers share the address", async () => {
    const options = { sampler: behind, store: stored.store, host: "127.0.0.1", port: 0 };
    const servers = await Promise.all([1, 2, 3].map(() => SamplerServer.open(options)));
    // Give the servers connections in turn, as a name with several addresses spreads them.
    let turn = 0;
    const spread = createServer(socket => {
      const { hostname, port } = new URL(servers[turn++ % servers.length]?.url ?? "");
      const to = connect(Number(port), hostname);
      socket.on("error", () => to.destroy()).pipe(to);
      to.on("error", () => socket.destroy()).pipe(socket);
    });
    await once(spread.listen(0, "127.0.0.1"), "listening");
    const address = spread.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const shared = client({ url: `http://127.0.0.1:${port}`, firstPauseMs: 1 });
    onTestFinished(async () => {
      await shared[Symbol.asyncDispose]();
      spread.close();
      for (const one of servers) await one[Symbol.asyncDispose]();
    });
    for (const policy of stored.policies.slice(0, 2)) {
      const request = (seed: number) => ({
        ...{ tokens: Int32Array.of(3, 1, 2), routesHeld: 0, stop: [], maxNewTokens: 3, policy },
        ...{ sampling: { temperature: 0.7, topP: 1, topK: 0 }, seed: `${seed}`.repeat(32) },
      });
      const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(seed => shared.generate(request(seed))));
      expect(new Set(answers.map(({ policyVersion }) => policyVersion))).toEqual(new Set([policy.version]));
    }
  });

  it("goes on with a server that took the place of the one it had, and gives the same again", async () => {
    const options = { sampler: behind, store: stored.store, host: "127.0.0.1" };
    const first = await SamplerServer.open({ ...options, port: 0 });
    const { url } = first;
    const asking = new SglangSampler({ url, model: stored.model, firstPauseMs: 20 });
    onTestFinished(() => asking[Symbol.asyncDispose]());
    const request = {
      ...{ tokens: Int32Array.of(3, 1, 2), routesHeld: 0, sampling: { temperature: 1, topP: 1, topK: 0 } },
      ...{ stop: [], maxNewTokens: 9, seed: "a".repeat(32), policy: stored.policies[1] },
    };
    const before = await asking.generate(request);
    await first[Symbol.asyncDispose]();
    // A new task of ECS begins like this: nobody has told it which policy to serve.
    const second = await SamplerServer.open({ ...options, port: Number(new URL(url).port) });
    onTestFinished(() => second[Symbol.asyncDispose]());
    expectEqual(await asking.generate(request), before);
  });
});
