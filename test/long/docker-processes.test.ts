// Runs whose drivers are processes and whose sandboxes are containers of an engine, as close to a deployment as one
// machine comes: demonstrations are played, so that what happens inside is known.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readClosed } from "../../src/rollout/close.ts";
import { iterationPrefix } from "../../src/run/keys.ts";
import { LABEL } from "../../src/sandbox/docker/container.ts";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "../run/check-store.ts";
import { makeTinyRun, startT1, type TinyRun, t1 } from "../run/tiny-run.ts";
import { importImage, noDocker } from "../sandbox/docker-images.ts";
import { onlyChild } from "../sandbox/processes.ts";

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;
const IMAGE = "t1-test/processes:1";
const DRIVER = fileURLToPath(new URL("../../containers/driver/main.ts", import.meta.url));

describe.skipIf(noDocker !== undefined)(`drivers as processes, sandboxes on docker${why}`, () => {
  let tiny: TinyRun;
  let engine: Engine;
  const own = `docker-${process.pid}`;
  beforeAll(async () => {
    engine = await Engine.open();
    await importImage(IMAGE, { changes: ["WORKDIR /app"] });
    tiny = await makeTinyRun({ tasks: 6 });
    writeFileSync(
      tiny.config,
      `algorithm: sft
policy: model
tasks: { pool: pool }
rollout: { episodes: 6, concurrency: 3 }
agent: { turns: 12, answerTokens: 40, contextTokens: 220 }
threads: 2
training: { iterations: 1 }
`,
    );
  }, 120_000);
  afterAll(() => {
    engine.close();
    rmSync(tiny.folder, { recursive: true, force: true });
  });

  const start = (run: string) => ["run", "start", tiny.config, "--name", run, "--local", tiny.store];
  const DOCKER = ["--processes", "--sandboxes", "docker", "--sampler", "served"];

  /** Sets the base of the pool's images: the host's files for bubblewrap, or an image of the engine. */
  function buildFrom(base: string): void {
    for (const task of readdirSync(tiny.pool)) {
      const file = join(tiny.pool, task, "environment/Dockerfile");
      writeFileSync(file, readFileSync(file, "utf8").replace(/^FROM .*$/m, `FROM ${base}`));
    }
  }

  async function rewards(run: string): Promise<readonly (readonly [string, number | null])[]> {
    const { episodes, failed } = await readClosed(await openStore(tiny.store), iterationPrefix(run, 0));
    expect(failed).toEqual([]);
    return episodes.map(({ task, reward }) => [task, reward]);
  }

  /** Containers of a run's sandboxes. */
  async function containersOf(run: string): Promise<readonly { readonly State: string }[]> {
    const { value } = await engine.call("GET", "/containers/json?all=true");
    const all = value as readonly { readonly Labels: Record<string, string>; readonly State: string }[];
    return all.filter(({ Labels }) => Labels[LABEL.id]?.startsWith(`runs.${run}.`));
  }

  test("give every episode the reward that it has in this process and in bubblewrap", async () => {
    const bubblewrap = await t1(...start(`${own}-b`));
    expect(bubblewrap.code, bubblewrap.stderr).toBe(0);
    buildFrom(IMAGE);
    const { code, stderr } = await t1(...start(`${own}-d`), ...DOCKER);
    expect(code, stderr).toBe(0);
    await checkFinishedRun(await openStore(tiny.store), `${own}-d`);
    const expected = await rewards(`${own}-b`);
    expect(new Set(expected.map(([, reward]) => reward)).size).toBeGreaterThan(1);
    expect(await rewards(`${own}-d`)).toEqual(expected);
    expect(await containersOf(`${own}-d`)).toEqual([]);
    const words = ["--pool", tiny.pool, "--episodes", "1", "--local", tiny.store, "--json"];
    const evaluated = await t1("evaluate", `${own}-d`, ...words, ...DOCKER);
    expect(evaluated.code, evaluated.stderr).toBe(0);
    expect(JSON.parse(evaluated.stdout)).toMatchObject({ policy: { missingCount: 0, valid: true } });
  });

  test("go on without a driver that is killed, whose containers end with it", async () => {
    buildFrom(IMAGE);
    const run = `${own}-k`;
    const runner = startT1(...start(run), ...DOCKER);
    const ended = new Promise(resolve => runner.once("exit", resolve));
    const isPlaying = async () => (await containersOf(run)).some(({ State }) => State === "running");
    while (!(await isPlaying())) {
      expect(runner.exitCode).toBeNull();
      await sleep(50);
    }
    const left = (await containersOf(run)).length;
    // With room for three episodes there is one driver at a time.
    process.kill(onlyChild(runner.pid, DRIVER), "SIGKILL");
    expect(left).toBeGreaterThan(0);
    expect(await ended).toBe(0);
    expect(await containersOf(run)).toEqual([]);
    const store = await openStore(tiny.store);
    expect(await checkFinishedRun(store, run)).toBeGreaterThan(0);
    expect(await rewards(run)).toHaveLength(6);
  });

  test("leave no container when the runner itself is killed", async () => {
    buildFrom(IMAGE);
    const run = `${own}-r`;
    const runner = startT1(...start(run), ...DOCKER);
    const ended = new Promise(resolve => runner.once("exit", resolve));
    while (!(await containersOf(run)).some(({ State }) => State === "running")) {
      expect(runner.exitCode).toBeNull();
      await sleep(50);
    }
    runner.kill("SIGKILL");
    await ended;
    await expect.poll(() => containersOf(run), { timeout: 120_000, interval: 500 }).toEqual([]);
    const { code, stderr } = await t1("run", "resume", run, "--local", tiny.store, ...DOCKER);
    expect(code, stderr).toBe(0);
    await checkFinishedRun(await openStore(tiny.store), run);
  });
});
