// The container's program as a process of its own, with a real store, a real model and real signals.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { SglangSampler } from "../../src/sampler/sglang/sglang-sampler.ts";
import { storePolicies } from "./policies.ts";

const MAIN = join(import.meta.dirname, "../../containers/sampler/main.ts");

function start(environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, T1_HOST: "127.0.0.1", T1_PORT: "0", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let errors = "";
  child.stderr.on("data", chunk => {
    errors += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, exited, lines, errors: () => errors };
}

describe("the sampler's container", { timeout: 120_000 }, () => {
  it("serves a store, and after SIGTERM answers what is under way and ends", async () => {
    const stored = await storePolicies();
    onTestFinished(stored.remove);
    const [policy] = stored.policies;
    const { child, exited, lines, errors } = start({ T1_STORE_URL: stored.store.url, T1_THREADS: "1" });
    const { value = "" } = await lines.next();
    const url = /^serving file:.* at (http:\/\/127\.0\.0\.1:\d+)$/.exec(value)?.[1];
    expect(url, errors()).toBeDefined();
    const sampler = new SglangSampler({ url: url ?? "", model: stored.model, tries: 1 });
    onTestFinished(() => sampler[Symbol.asyncDispose]());
    const request = {
      ...{ tokens: Int32Array.of(1, 2), routesHeld: 0, sampling: { temperature: 1, topP: 1, topK: 0 } },
      ...{ stop: [], maxNewTokens: 100, seed: "1".repeat(32), policy },
    };
    const first = await sampler.generate(request);
    expect(first.receiptMadeBy).toBe("server");
    const underWay = sampler.generate(request);
    while (!(await isRunning(url ?? ""))) await new Promise(resolve => setTimeout(resolve, 1));
    child.kill("SIGTERM");
    expect((await underWay).tokens).toEqual(first.tokens);
    expect((await lines.next()).value).toMatch(/^draining: \d+ requests under way$/);
    expect(await exited).toEqual([0, null]);
  });

  it.each([
    ["no store", {}, "T1_STORE_URL"],
    [
      "a policy without its version",
      { T1_STORE_URL: "/tmp", T1_POLICY: "a/" },
      "T1_POLICY and T1_POLICY_VERSION together",
    ],
    ["no number of threads", { T1_STORE_URL: "/tmp", T1_THREADS: "many" }, "T1_THREADS"],
    ["a store that cannot be", { T1_STORE_URL: "gs://x" }, "got scheme gs:"],
  ])("does not start with %s, and says so", async (_, environment, reason) => {
    const { exited, errors } = start(environment);
    expect(await exited).toEqual([2, null]);
    expect(errors()).toContain(reason);
    expect(errors()).not.toContain(" at ");
  });
});

async function isRunning(url: string): Promise<boolean> {
  const health: unknown = await (await fetch(`${url}/health`)).json();
  return typeof health === "object" && health !== null && "running" in health && health.running === 1;
}
