// Runs whose drivers ask a served sampler, as those of a deployment do.
import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuditRecord, readMetrics } from "../../src/learning/metrics.ts";
import { ServedSampler } from "../../src/local/served-sampler.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { readClosed } from "../../src/rollout/close.ts";
import { arraysKey, attemptPrefix, auditKey, episodePrefix, iterationPrefix } from "../../src/run/keys.ts";
import type { RunEvent } from "../../src/run/run-events.ts";
import { readJson } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { decodeChunks } from "../../src/trajectory/chunk.ts";
import { listProcesses } from "../sandbox/processes.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, startT1, type TinyRun, t1 } from "./tiny-run.ts";

const ITERATIONS = 2;

describe("a run with a served sampler", () => {
  let tiny: TinyRun;
  let store: ObjectStore;
  beforeAll(async () => {
    tiny = await makeTinyRun({ tasks: 4, iterations: ITERATIONS });
    store = await openStore(tiny.store);
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));
  const start = (name: string) => ["run", "start", tiny.config, "--name", name, "--local", tiny.store];

  it("proves and replays what was sampled, and samples what the sampler in process does", async () => {
    for (const [name, ...words] of [["own"], ["drivers", "--sampler", "served", "--processes"]] as const) {
      const { code, stderr } = await t1(...start(name), ...words);
      expect(code, stderr).toBe(0);
      await checkProven(store, name);
    }
    // Compare only first turns: later ones depend on the answers of a sandbox.
    const own = await firstAnswers(store, "own");
    expect(own.map(({ length }) => length > 0)).toEqual(Array(8).fill(true));
    expect(await firstAnswers(store, "drivers")).toEqual(own);
  });

  it("is evaluated by it, and leaves no process behind", async () => {
    const words = ["--episodes", "1", "--local", tiny.store, "--sampler", "served", "--json"];
    const { code, stdout, stderr } = await t1("evaluate", "own", "--pool", tiny.pool, ...words);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ policyVersion: 2, policy: { missingCount: 0, valid: true } });
    expect(programsOf(tiny)).toEqual([]);
  });

  it("loses and falsifies no episode when the sampler is killed under way", async () => {
    const settings = ["agent.answerTokens=60", "rollout.episodes=16", "rollout.concurrency=4"];
    const runner = startT1(
      ...[...start("shot"), "--sampler", "served"],
      ...settings.flatMap(setting => ["--set", setting]),
    );
    const random = new RandomStream(deriveSeed("shots", Date.now()));
    const shot = new Set<number>();
    while (runner.exitCode === null && shot.size < 3) {
      const [pid] = programsOf(tiny, "sampler").filter(one => !shot.has(one));
      const isPlaying = (await store.head("runs/shot/iterations/000000/plan.jsonl")) !== undefined;
      await sleep(isPlaying ? random.integer(1_000) : 20);
      if (pid === undefined || !isPlaying) continue;
      process.kill(pid, "SIGKILL");
      shot.add(pid);
    }
    const code = runner.exitCode ?? (await new Promise(resolve => runner.once("exit", resolve)));
    expect([code, shot.size]).toEqual([0, 3]);
    await checkProven(store, "shot");
    expect(programsOf(tiny)).toEqual([]);
  });

  it("replaces a sampler that hangs, at the same address", async () => {
    const health = { intervalMs: 100, timeoutMs: 1_000, retries: 2, stopTimeoutSeconds: 0.1 };
    const told: RunEvent[] = [];
    const onEvent = (event: RunEvent) => void told.push(event);
    const settings = { storeUrl: `file://${tiny.store}`, threads: 1, cacheBytes: 1 << 20, health, onEvent };
    await using served = await ServedSampler.open(settings);
    const [hung = 0] = programsOf(tiny, "sampler");
    // While it answers it stays, also without weights, with which it would be healthy.
    await sleep(5 * health.intervalMs);
    expect(programsOf(tiny, "sampler")).toEqual([hung]);
    process.kill(hung, "SIGSTOP");
    await expect.poll(() => told, { timeout: 20_000 }).toHaveLength(1);
    expect(told).toMatchObject([
      { state: "sampler", text: "the sampler no longer answered; it is started again" },
    ]);
    const status = () =>
      fetch(`${served.url}/health`).then(
        answer => answer.status,
        () => 0,
      );
    await expect.poll(status, { timeout: 20_000 }).toBe(503);
    expect(programsOf(tiny, "sampler")).not.toContain(hung);
  });

  it("ends with a runner that is killed, as its drivers do", async () => {
    const runner = startT1(...start("gone"), "--sampler", "served", "--processes");
    while (programsOf(tiny, "driver").length === 0) {
      expect(runner.exitCode).toBeNull();
      await sleep(20);
    }
    expect(programsOf(tiny, "sampler")).toHaveLength(1);
    runner.kill("SIGKILL");
    while (programsOf(tiny).length > 0) await sleep(50);
    const { code, stderr } = await t1("run", "resume", "gone", "--local", tiny.store, "--sampler", "served");
    expect(code, stderr).toBe(0);
    await checkProven(store, "gone");
    // Drivers of the runner itself ask the same sampler for the same.
    expect(await firstAnswers(store, "gone")).toEqual(await firstAnswers(store, "own"));
  });
});

/** Every planned episode counts, every turn's receipt was made again before training, and its routes were replayed. */
async function checkProven(store: ObjectStore, run: string): Promise<void> {
  await checkFinishedRun(store, run);
  for (let iteration = 0; iteration < ITERATIONS; iteration++) {
    const phase = iterationPrefix(run, iteration);
    const { episodes, failed } = await readClosed(store, phase);
    expect(failed).toEqual([]);
    const audit = await readJson(store, auditKey(phase), AuditRecord);
    const turns = episodes.reduce((sum, { turnCount }) => sum + turnCount, 0);
    expect(audit).toMatchObject({ policyVersion: iteration, receiptCount: turns });
    const { numbers } = await readMetrics(store, phase);
    expect(numbers["mismatch.replayed.max"]).toBeLessThan(1e-4);
  }
}

/** Sampled ids of the first turn of each episode of the first iteration. */
async function firstAnswers(store: ObjectStore, run: string): Promise<readonly (readonly number[])[]> {
  const phase = iterationPrefix(run, 0);
  const { episodes } = await readClosed(store, phase);
  return Promise.all(
    episodes.map(async ({ episode, attempt }) => {
      const key = arraysKey(attemptPrefix(episodePrefix(phase, episode), attempt));
      const arrays = await store.get(key);
      const [chunk] = decodeChunks(arrays?.body ?? new Uint8Array(), key);
      const [turn] = chunk?.turns ?? [];
      return [...(chunk?.tokens.subarray(turn?.start, turn?.end) ?? [])];
    }),
  );
}

/** Ids of the containers' programs that work on this run's store. */
function programsOf({ store }: TinyRun, container = ""): readonly number[] {
  return listProcesses()
    .filter(({ words }) => words.some(word => word.includes(`containers/${container}`)))
    .map(({ pid }) => pid)
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`T1_STORE_URL=file://${store}`);
      } catch {
        return false; // ended while we looked
      }
    });
}
