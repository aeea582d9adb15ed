// The driver's and the trainer's programs as a state machine starts them, with local sandboxes: a second driver finishes
// an interrupted shard, and the trainer trains on the episodes of both.
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { parseRunConfig } from "../../src/config/parse-config.ts";
import { close } from "../../src/rollout/close.ts";
import { planIteration } from "../../src/rollout/plan.ts";
import { score } from "../../src/rollout/score.ts";
import { writeShards } from "../../src/rollout/shards.ts";
import { iterationPrefix, policyPrefix } from "../../src/run/keys.ts";
import { EpisodeRecord } from "../../src/run/records.ts";
import { describeSoftware } from "../../src/run/run-record.ts";
import { startRun } from "../../src/run/start-run.ts";
import { storePool } from "../../src/run/stored-pool.ts";
import { readJson } from "../../src/store/json.ts";
import { manifestKey } from "../../src/store/manifest.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "../run/check-store.ts";
import { makeTinyRun, t1 } from "../run/tiny-run.ts";

const ROOT = join(import.meta.dirname, "../..");

interface Program {
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
  /** The program's output so far. */
  readonly output: () => string;
  readonly stop: () => void;
}

function start(container: "driver" | "sampler" | "trainer", env: Readonly<Record<string, string>>): Program {
  const child = spawn(process.execPath, [join(ROOT, "containers", container, "main.ts")], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", text => {
    output += text;
  });
  child.stderr.on("data", text => {
    output += text;
  });
  const ended = new Promise<{ code: number | null; output: string }>(resolve =>
    child.once("close", code => resolve({ code, output })),
  );
  return { ended, output: () => output, stop: () => child.kill("SIGTERM") };
}

it("an interrupted shard is finished by a second driver, with a served sampler, and trained on", async () => {
  const tiny = await makeTinyRun({
    tasks: 8,
    iterations: 1,
    settings: "rollout:\n  episodes: 8\n  concurrency: 1\n",
  });
  onTestFinished(() => rmSync(tiny.folder, { recursive: true, force: true }));
  const store = await openStore(tiny.store);
  await storePool({ folder: tiny.pool, name: "tiny" }, { store });
  const text = (await readFile(tiny.config, "utf8")).replace("pool: pool", "pool: store:tiny");
  const config = parseRunConfig(text, tiny.config);
  await startRun(
    { run: "r", config, configFile: tiny.config, software: describeSoftware({}), createdAt: new Date(0) },
    { store },
  );
  const { lines: plan } = await planIteration({ run: "r", iteration: 0 }, { store });
  const phase = iterationPrefix("r", 0);
  const env = {
    T1_STORE_URL: tiny.store,
    T1_PHASE: phase,
    T1_EPISODES: "0,1,2,3,4,5,6,7",
    T1_POLICY_VERSION: "0",
    T1_SANDBOXES: "bubblewrap",
    T1_THREADS: "1",
  };
  const first = start("driver", env);
  const finished = async (): Promise<number> => {
    const keys = (await Array.fromAsync(store.list(phase))).map(({ key }) => key);
    const records = keys.filter(key => key.endsWith("/episode.json"));
    const read = await Promise.all(records.map(key => readJson(store, key, EpisodeRecord)));
    // One that the end of its driver cut off counts as not begun.
    expect(read.map(({ failure }) => failure)).toEqual(read.map(() => undefined));
    return read.length;
  };
  let isOver = false;
  first.ended.then(() => {
    isOver = true;
  });
  while (!isOver && (await finished()) === 0) await sleep(20);
  first.stop();
  expect(await first.ended).toMatchObject({ code: 75, output: expect.stringContaining("SIGTERM") });
  const before = await finished();
  expect(before).toBeLessThan(8);

  const { shardCount } = await writeShards(
    { run: "r", phase, plan, episodesPerDriver: 16, policyVersion: 0 },
    { store },
  );
  expect(shardCount).toBe(1);
  const sampler = start("sampler", {
    ...{ T1_STORE_URL: tiny.store, T1_HOST: "127.0.0.1", T1_PORT: "0", T1_THREADS: "1", T1_SAMPLER_KEY: "k" },
  });
  onTestFinished(sampler.stop);
  const url = (): string | undefined => /^serving .* at (http:\S+)$/m.exec(sampler.output())?.[1];
  await expect.poll(url, { timeout: 60_000 }).toBeDefined();
  const served = { T1_SAMPLER_URL: url() ?? "", T1_SAMPLER_KEY: "k" };
  const second = await start("driver", { ...env, ...served }).ended;
  expect(second).toMatchObject({ code: 0 });
  expect(second.output.match(/"episode":/g)).toHaveLength(8);
  expect(await finished()).toBe(8); // nothing was played twice
  expect(
    (await writeShards({ run: "r", phase, plan, episodesPerDriver: 16, policyVersion: 0 }, { store }))
      .shardCount,
  ).toBe(0);

  await score({ phase, plan, rewardConfig: config.reward }, { store });
  await close({ phase, policyVersion: 0, rewardConfig: config.reward, minimum: 8 }, { store });
  const trainer = { T1_STORE_URL: tiny.store, T1_RUN: "r", T1_ITERATION: "0", T1_THREADS: "1" };
  expect(await start("trainer", trainer).ended).toMatchObject({ code: 0 });
  expect(await store.head(manifestKey(policyPrefix("r", 1)))).toBeDefined();
});

it("bad input ends with the exit code that no machine retries", async () => {
  const { code, output } = await start("driver", { T1_EPISODES: "one" }).ended;
  expect(code).toBe(2);
  expect(output).toContain("T1_EPISODES");
  expect(await start("trainer", {}).ended).toMatchObject({
    code: 2,
    output: expect.stringContaining("T1_RUN"),
  });
});

it("a run goes through its iterations with drivers and trainers as processes", async () => {
  const tiny = await makeTinyRun({ tasks: 8, iterations: 2, settings: "rollout:\n  episodes: 6\n" });
  onTestFinished(() => rmSync(tiny.folder, { recursive: true, force: true }));
  const run = (...words: string[]) => t1("run", "start", tiny.config, "--local", tiny.store, ...words);
  const ended = await run("--name", "r", "--processes");
  expect(ended.code, ended.stderr).toBe(0);
  const store = await openStore(tiny.store);
  expect(await checkFinishedRun(store, "r")).toBe(0);
  const cut = ["--set", "rollout.stragglers=cut", "--set", "rollout.launch=8"];
  expect(await run("--name", "cut", "--processes", ...cut)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("drivers that are processes cannot cut stragglers"),
  });
});
