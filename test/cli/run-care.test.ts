// Runs that somebody works on and runs that nobody works on: watch, stop, cost, delete.
import { once } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { makeTinyRun, startT1, type TinyRun, t1 } from "../run/tiny-run.ts";

/** Time limit on a busy host that synthesizes the state machines first. */
const PATIENCE_MS = 280_000;

describe("a run", () => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun({ tasks: 2, iterations: 60, settings: "rollout:\n  episodes: 2\n" });
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  const run = (...words: string[]) => t1("run", ...words, "--local", tiny.store);

  test("that is at work is watched and not deleted; killed, every command says that nobody works on it", {
    timeout: 3 * PATIENCE_MS,
  }, async () => {
    const runner = startT1("run", "start", tiny.config, "--name", "r", "--local", tiny.store);
    onTestFinished(() => {
      runner.kill("SIGKILL");
    });
    const folder = join(tiny.store, "runs/r");
    await vi.waitUntil(() => existsSync(join(folder, "iterations/000000/closed.json")), {
      timeout: PATIENCE_MS,
      interval: 50,
    });
    expect(await run("delete", "r", "--yes")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/somebody works on the run: .*\n {2}fix: t1 run stop r/),
    });
    const watched = run("watch", "r");
    await vi.waitUntil(() => existsSync(join(folder, "iterations/000001/closed.json")), {
      timeout: PATIENCE_MS,
      interval: 50,
    });
    runner.kill("SIGKILL");
    await once(runner, "exit");
    const nobody = /nobody works on r: \d+ of 60 iterations are done; t1 run resume r goes on\n$/;
    expect(await watched).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^iteration 1\/60 /),
      stderr: expect.stringMatching(nobody),
    });
    expect(await run("watch", "r")).toMatchObject({ code: 0, stderr: expect.stringMatching(nobody) });
    const stopped = await run("stop", "r");
    expect(stopped.stdout).toBe("nobody works on r, so there is nothing to stop; t1 run resume r goes on\n");
    expect((await run("list")).stdout).toMatch(/r +ppo +\d+\/60 +unfinished/);
  });

  test("that nobody works on is deleted once that is confirmed, and its name is free", async () => {
    expect(await run("delete", "r")).toMatchObject({ code: 2, stderr: expect.stringContaining("add --yes") });
    expect(existsSync(join(tiny.store, "runs/r/run.json"))).toBe(true);
    expect(await run("delete", "r", "--yes")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^r is deleted: \d+ objects\n$/),
    });
    expect((await run("list")).stdout).toMatch(/^no run in /);
    expect(await run("delete", "r", "--yes")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such run"),
    });
  });

  test("of a store that is not there: nothing is made", async () => {
    const typo = join(tiny.folder, "typo");
    for (const words of [["list"], ["watch", "r"], ["stop", "r"], ["resume", "r"], ["delete", "r", "--yes"]])
      expect(await t1("run", ...words, "--local", typo), words.join(" ")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("no such store"),
      });
    expect(readdirSync(tiny.folder)).not.toContain("typo");
  });
});
