// Whole runs through the command line.
import type { ChildProcess } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readClosed } from "../../src/rollout/close.ts";
import { iterationPrefix } from "../../src/run/keys.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, startT1, type TinyRun, t1 } from "./tiny-run.ts";

describe("a run", () => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun();
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  it("goes through its iterations, and its store tells all of it", async () => {
    const { code, stdout, stderr } = await t1(
      "run",
      "start",
      tiny.config,
      "--name",
      "whole",
      "--local",
      tiny.store,
      "--json",
    );
    expect([code, stderr.includes("iteration 3/3")], stderr).toEqual([0, true]);
    expect(JSON.parse(stdout)).toMatchObject({ run: "whole", policyVersion: 3 });
    expect(await checkFinishedRun(await openStore(tiny.store), "whole")).toBe(0);
  });

  it("is refused a name that is taken, and listed", async () => {
    const again = await t1("run", "start", tiny.config, "--name", "whole", "--local", tiny.store);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("the run exists already")]);
    const go = ["run", "start", tiny.config, "--name", "whole", "--local", tiny.store, "--continue"];
    expect((await t1(...go)).code).toBe(0);
    expect(await t1(...go, "--set", "training.gamma=0.5")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /another config: .*run\.yaml.*; training\.gamma: 1, now 0\.5\n.*resume whole/,
      ),
    });
    const list = await t1("run", "list", "--local", tiny.store, "--json");
    const [run, ...others] = JSON.parse(list.stdout);
    expect(run).toMatchObject({ run: "whole", algorithm: "ppo", done: 3, iterations: 3, state: "done" });
    expect(others).toEqual([]);
    // Times are in UTC, whatever the host's time zone (harbor#2522).
    expect(run.createdAt).toMatch(/Z$/);
    expect(Math.abs(Date.parse(run.createdAt) - Date.now())).toBeLessThan(10 * 60_000);
  });

  it("is told from what cannot be read, found or written, and evaluated when it was stopped", async () => {
    const broken = join(tiny.store, "runs/broken");
    mkdirSync(broken);
    writeFileSync(join(broken, "run.json"), '{"format":"t1-run-0"}');
    const list = await t1("run", "list", "--local", tiny.store, "--json");
    rmSync(broken, { recursive: true });
    expect(list).toMatchObject({ code: 0, stderr: expect.stringContaining("runs/broken/run.json") });
    expect(JSON.parse(list.stdout)).toMatchObject([
      { run: "broken", state: "unreadable" },
      { run: "whole", state: "done" },
    ]);
    expect(await t1("run", "resume", "hole", "--local", tiny.store)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such run: runs/hole/run.json"),
    });
    expect(existsSync(join(tiny.store, "runs/hole"))).toBe(false);
    const unwritable = ["--out", join(tiny.store, "no/where.json"), "--local", tiny.store];
    expect(await t1("episode", "export", "whole", "0", ...unwritable)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot write the file"),
    });
    await t1("run", "stop", "whole", "--local", tiny.store);
    const words = ["--pool", firstTasks(tiny, 1), "--episodes", "1", "--local", tiny.store];
    const evaluated = await t1("evaluate", "whole", ...words);
    expect(evaluated.code, evaluated.stderr).toBe(0);
  });

  it("is read without a change to its store, and a name with a slip makes none", async () => {
    const copy = join(tiny.folder, "copy");
    cpSync(tiny.store, copy, { recursive: true });
    rmSync(join(copy, ".t1-store"), { recursive: true });
    const files = (): string[] => readdirSync(copy, { recursive: true, encoding: "utf8" }).sort();
    const before = files();
    const readers = [
      ["run", "list"],
      ["run", "watch", "whole"],
      ["report", "whole", "--out", join(tiny.folder, "report.html")],
      ["episode", "export", "whole", "0", "--out", join(tiny.folder, "episode.json")],
      ["cost", "whole"],
    ];
    for (const words of readers) {
      const { code, stderr } = await t1(...words, "--local", copy);
      expect(code, stderr).toBe(0);
    }
    expect(files()).toEqual(before);
    const nowhere = join(tiny.folder, "typo");
    for (const words of [
      ["run", "list"],
      ["run", "resume", "whole"],
      ["evaluate", "whole", "--pool", tiny.pool],
    ])
      expect(await t1(...words, "--local", nowhere), words.join(" ")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`no such store: ${nowhere}`),
      });
    expect(existsSync(nowhere)).toBe(false);
  });

  it("refuses a second runner while the first works, and goes on after a stop", async () => {
    const small = ["--set", "rollout.episodes=4", "--set", "training.iterations=2"];
    const first = startT1("run", "start", tiny.config, "--name", "two", "--local", tiny.store, ...small);
    const store = await openStore(tiny.store);
    await untilWritten(store, "runs/two/iterations/000000/plan.jsonl", first);
    // Hold it, so that it is still in progress when the other two have started, however slow the host is.
    first.kill("SIGSTOP");
    const second = await t1("run", "resume", "two", "--local", tiny.store);
    expect([second.code, second.stderr]).toEqual([2, expect.stringContaining("owned")]);
    expect((await t1("run", "stop", "two", "--local", tiny.store)).code).toBe(0);
    first.kill("SIGCONT");
    const code = await new Promise(resolve => first.once("exit", resolve));
    expect(code).toBe(75);
    expect((await t1("run", "resume", "two", "--local", tiny.store)).code).toBe(0);
    await checkFinishedRun(store, "two");
  });

  it("goes on after kill -9, and counts nothing twice", async () => {
    const store = await openStore(tiny.store);
    let begin = ["run", "start", tiny.config, "--name", "killed", "--set", "training.iterations=2"];
    for (const waitFor of [
      "iterations/000000/episodes/000000/attempt-000001/claim.json",
      "iterations/000001/closed.json",
    ]) {
      const child = startT1(...begin, "--local", tiny.store);
      await untilWritten(store, `runs/killed/${waitFor}`, child);
      child.kill("SIGKILL");
      await new Promise(resolve => child.once("exit", resolve));
      begin = ["run", "resume", "killed"];
    }
    expect((await t1("run", "resume", "killed", "--local", tiny.store)).code).toBe(0);
    expect(await checkFinishedRun(store, "killed")).toBeGreaterThan(0);
  });

  it("takes the critic of a warm-up, and its weights only", async () => {
    const start = (name: string, setting: string) => {
      const settings = ["rollout.episodes=2", "training.iterations=1", setting];
      const words = ["--name", name, "--local", tiny.store, ...settings.flatMap(set => ["--set", set])];
      return t1("run", "start", tiny.config, ...words);
    };
    const warm = await start("warm", "training.critic.onlyPasses=2");
    expect(warm.code, warm.stderr).toBe(0);
    const { code, stderr } = await start("warmed", "training.critic.from={run: warm}");
    expect(code, stderr).toBe(0);
    const weights = (path: string): Buffer =>
      readFileSync(join(tiny.store, "runs", path, "model.safetensors"));
    expect(weights("warmed/engine/000000/critic").equals(weights("warm/engine/000001/critic"))).toBe(true);
    // Moments start from zero: there is no optimizer state of version 0.
    expect(existsSync(join(tiny.store, "runs/warmed/engine/000000/actor.safetensors"))).toBe(false);
  });

  it("with the straggler rule takes the first that finish, and says who was cut", async () => {
    const cut = [
      "rollout.episodes=4",
      "rollout.launch=10",
      "rollout.stragglers=cut",
      "rollout.concurrency=4",
      "training.iterations=1",
    ];
    const { code, stderr } = await t1(
      "run",
      "start",
      tiny.config,
      "--name",
      "cut",
      "--local",
      tiny.store,
      ...cut.flatMap(setting => ["--set", setting]),
    );
    expect(code, stderr).toBe(0);
    const closed = await readClosed(await openStore(tiny.store), iterationPrefix("cut", 0));
    expect(closed.episodes.length).toBeGreaterThanOrEqual(4);
    expect(closed.cancelled.length).toBeGreaterThan(0);
    expect(closed.episodes.length + closed.cancelled.length).toBe(10);
    expect(closed.failed).toEqual([]);
  });

  it("with --overlap plays an iteration by the policy before the one that is being trained, also when resumed", async () => {
    const store = await openStore(tiny.store);
    const words = ["--local", tiny.store, "--overlap", "--set", "rollout.episodes=4"];
    const first = startT1("run", "start", tiny.config, "--name", "over", ...words);
    const ended = new Promise(resolve => first.once("exit", resolve));
    await untilWritten(store, "runs/over/iterations/000001/plan.jsonl", first);
    first.kill("SIGKILL");
    await ended;
    const { code, stderr } = await t1("run", "resume", "over", "--local", tiny.store);
    expect(code, stderr).toBe(0);
    const versions = [0, 1, 2].map(async iteration => {
      const { policyVersion, episodes } = await readClosed(store, iterationPrefix("over", iteration));
      return [policyVersion, episodes.length];
    });
    expect(await Promise.all(versions)).toEqual([
      [0, 4],
      [0, 4],
      [1, 4],
    ]);
  });

  it("evaluates what it is told to, also at its start and its end, and t1 evaluate compares", async () => {
    const pool = firstTasks(tiny, 3);
    const settings = [
      ...["rollout.episodes=4", "training.iterations=2"],
      `evaluation={pool: ${pool}, every: 2, episodes: 1}`,
    ];
    const { code, stderr } = await t1(
      "run",
      "start",
      tiny.config,
      "--name",
      "watched",
      "--local",
      tiny.store,
      ...settings.flatMap(setting => ["--set", setting]),
    );
    expect(code, stderr).toBe(0);
    const store = await openStore(tiny.store);
    expect(await Array.fromAsync(store.folders("runs/watched/evaluations/"))).toEqual([
      "during-000000",
      "during-000002",
    ]);
    const compared = await t1(
      "evaluate",
      "watched",
      "--pool",
      pool,
      "--episodes",
      "2",
      "--local",
      tiny.store,
      "--json",
    );
    expect(compared.code, compared.stderr).toBe(0);
    expect(JSON.parse(compared.stdout)).toMatchObject({
      policyVersion: 2,
      policy: { taskCount: 3, missingCount: 0, valid: true },
      gain: { taskCount: 3 },
    });
    // Another pool of the same name has other results, and none of a policy that is not there.
    const other = firstTasks(tiny, 1);
    const evaluate = (...words: string[]) =>
      t1("evaluate", "watched", "--episodes", "2", "--local", tiny.store, ...words);
    expect(await evaluate("--pool", other)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/has other tasks: .*pool-v000000-x2.*task-001\n.*--name/),
    });
    expect(await evaluate("--pool", other, "--name", "other", "--policy", "7")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there are versions 0, 1, 2"),
    });
    expect((await Array.fromAsync(store.folders("runs/watched/evaluations/"))).filter(isOther)).toEqual([]);
    const apart = await evaluate("--pool", other, "--name", "other", "--json");
    expect(JSON.parse(apart.stdout), apart.stderr).toMatchObject({ pool: "other", policy: { taskCount: 1 } });
  });
});

/** A pool of the run's first tasks, under the same name: playing all of them would prove nothing more. */
function firstTasks({ folder, pool }: TinyRun, count: number): string {
  const fewer = join(folder, `first-${count}`, basename(pool));
  for (const task of readdirSync(pool).sort().slice(0, count))
    cpSync(join(pool, task), join(fewer, task), { recursive: true });
  return fewer;
}

function isOther(evaluation: string): boolean {
  return evaluation.startsWith("other");
}

/** @throws when the process ends before */
async function untilWritten(store: ObjectStore, key: string, child: ChildProcess): Promise<void> {
  while ((await store.head(key)) === undefined) {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode} before ${key} was there`);
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}
