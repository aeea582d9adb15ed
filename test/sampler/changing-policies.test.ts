// A sampler in process serves one policy after another with one engine, and makes a new engine for a model of another
// shape.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { ModelConfig } from "../../src/model/config.ts";
import { policyPrefix } from "../../src/run/keys.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import type { GenerateRequest, Generation, PolicyReference } from "../../src/sampler/sampler.ts";
import { openFileStore } from "../../src/store/file-store.ts";
import { type StoredPolicies, storePolicies, storePolicy } from "./policies.ts";

describe("a sampler whose policy changes", { timeout: 60_000 }, () => {
  let stored: StoredPolicies;
  beforeAll(async () => {
    stored = await storePolicies();
  });
  afterAll(() => stored.remove());

  function open(): (policy: PolicyReference, maxNewTokens?: number) => Promise<Generation> {
    const sampler = new OnnxSampler({ threads: 1, cacheBytes: 1e8, storeUrl: stored.store.url });
    onTestFinished(() => sampler[Symbol.asyncDispose]());
    return (policy, maxNewTokens = 3) => sampler.generate(ask(policy, maxNewTokens));
  }

  async function store(run: string, change: Partial<ModelConfig>): Promise<PolicyReference> {
    const policy = { version: 7, prefix: policyPrefix(run, 7) };
    await storePolicy(stored.store, { ...stored.model, ...change }, policy);
    return policy;
  }

  it("keeps the last one where one of another shape cannot be computed", async () => {
    const generate = open();
    const [one, two] = stored.policies;
    const broken = await store("broken", { headCount: 3 }); // for two heads of keys
    const before = await generate(one);
    await expect(generate(broken)).rejects.toMatchObject({ name: "InputError" });
    expect(await generate(one)).toEqual(before);
    await expect(generate(broken)).rejects.toMatchObject({ name: "InputError" });
    expect(await generate(two)).toMatchObject({ policyVersion: two.version });
  });

  it("gives the answers that are under way before it takes one of another shape", async () => {
    const generate = open();
    const [one] = stored.policies;
    const deeper = await store("deeper", { layerCount: 5 });
    const alone = await generate(one, 100);
    const underWay = generate(one, 100);
    const other = generate(deeper);
    const again = generate(one, 100);
    expect(await underWay).toEqual(alone);
    expect(await other).toMatchObject({ policyVersion: deeper.version });
    expect(await again).toEqual(alone);
  });

  it("loads one that was not there when it is asked for again, also where another was missing since", async () => {
    const generate = open();
    const late = { version: 7, prefix: policyPrefix("late", 7) };
    const never = { version: 7, prefix: policyPrefix("never", 7) };
    await generate(stored.policies[0]);
    const missing = await Promise.allSettled([generate(late), generate(never)]);
    expect(missing.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await store("late", {});
    expect(await generate(late)).toMatchObject({ policyVersion: late.version });
  });

  it("gives up at once a request whose caller leaves while its policy is being loaded, and answers the others", async () => {
    const sampler = new OnnxSampler({ threads: 1, cacheBytes: 1e8, storeUrl: stored.store.url });
    onTestFinished(() => sampler[Symbol.asyncDispose]());
    const leaving = new AbortController();
    const ends: string[] = [];
    const left = sampler.generate({ ...ask(stored.policies[0], 500), signal: leaving.signal });
    const stays = sampler.generate(ask(stored.policies[0], 1)).then(() => ends.push("answered"));
    setTimeout(() => leaving.abort(), 1);
    await expect(left).rejects.toMatchObject({ name: "AbortError" });
    ends.push("gave up");
    await stays;
    expect(ends).toEqual(["gave up", "answered"]);
  });

  it("refuses what a thread that died had to answer, and answers again from another thread", async () => {
    const folder = await mkdtemp(join(tmpdir(), "t1-dead-thread-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const place = join(folder, "store");
    // The thread dies as it opens its store, since a file lies where the folder of the store should be.
    await writeFile(place, "");
    const sampler = new OnnxSampler({ threads: 1, cacheBytes: 1e8, storeUrl: place });
    onTestFinished(() => sampler[Symbol.asyncDispose]());
    const [policy] = stored.policies;
    const dead = await Promise.allSettled([1, 2].map(() => sampler.generate(ask(policy, 1))));
    for (const result of dead)
      expect(result).toMatchObject({
        status: "rejected",
        reason: { name: "SamplerUnavailable", retryable: true },
      });
    await rm(place);
    await storePolicy(await openFileStore(place), stored.model, policy);
    expect(await sampler.generate(ask(policy, 1))).toMatchObject({ policyVersion: policy.version });
  });

  it("refuses a policy whose weights are no numbers, by name and as nothing that is tried again", async () => {
    const generate = open();
    const policy = { version: 7, prefix: policyPrefix("not-finite", 7) };
    await storePolicy(stored.store, stored.model, policy, () => Number.NaN);
    await expect(generate(policy)).rejects.toMatchObject({ name: "PolicyNotFinite", retryable: false });
    expect(await generate(stored.policies[0])).toMatchObject({ policyVersion: 1 });
  });
});

function ask(policy: PolicyReference, maxNewTokens: number): GenerateRequest {
  return {
    ...{ tokens: Int32Array.of(3, 1, 2), routesHeld: 0, stop: [], maxNewTokens, policy },
    ...{ sampling: { temperature: 1, topP: 1, topK: 0 }, seed: "1".repeat(32) },
  };
}
