// Settings that change in a run: `t1 run resume --set`.
import { readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readRun } from "../../src/run/run-record.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

describe("run resume --set", () => {
  let tiny: TinyRun;
  const resume = (...settings: string[]) =>
    t1("run", "resume", "r", "--local", tiny.store, ...settings.flatMap(one => ["--set", one]));
  const record = () => readFileSync(join(tiny.store, "runs/r/run.json"), "utf8");

  beforeAll(async () => {
    tiny = await makeTinyRun({ iterations: 1, settings: "rollout:\n  episodes: 4\n" });
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  it("begins with a run that is done", async () => {
    const { code, stderr } = await t1("run", "start", tiny.config, "--name", "r", "--local", tiny.store);
    expect(code, stderr).toBe(0);
  });

  it("refuses by name what may not change, with the reason, and changes nothing then", async () => {
    const before = record();
    for (const setting of ["agent.contextTokens=240", "seed=1", "training.actor.learningRate=0.1"])
      expect(await resume("rollout.concurrency=2", setting)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(
          new RegExp(
            `cannot change in a run: ${setting.split("=")[0]}: .*another experiment; what can change: training.iterations, .*\n.*fix: .*policy: {run: r}`,
          ),
        ),
      });
    expect(await resume("rollout.concurrency=0")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("rollout.concurrency"),
    });
    expect(record()).toBe(before);
  });

  it("goes on for more iterations, also without the model it began with, and says what changed", async () => {
    renameSync(join(tiny.folder, "model"), join(tiny.folder, "gone"));
    const { code, stderr } = await resume("training.iterations=2", "rollout.concurrency=3");
    expect(code, stderr).toBe(0);
    expect(stderr).toContain("changed from iteration 2 on: training.iterations: 1, now 2");
    const store = await openStore(tiny.store);
    expect(await checkFinishedRun(store, "r")).toBe(0);
    const changes = [
      { iteration: 1, key: "training.iterations", old: 1, new: 2 },
      { iteration: 1, key: "rollout.concurrency", old: 64, new: 3 },
    ];
    const { config, changes: recorded } = await readRun(store, "r");
    expect([config.training.iterations, config.rollout.concurrency]).toEqual([2, 3]);
    expect(recorded).toMatchObject(changes);
    const list = await t1("run", "list", "--local", tiny.store, "--json");
    expect(JSON.parse(list.stdout)).toMatchObject([
      { run: "r", algorithm: "ppo", done: 2, iterations: 2, state: "done", changes },
    ]);
    const out = join(tiny.folder, "report.html");
    expect(await t1("report", "r", "--local", tiny.store, "--out", out)).toMatchObject({ code: 0 });
    expect(readFileSync(out, "utf8")).toContain("training.iterations: 1, then 2");
    const again = ["run", "start", tiny.config, "--name", "r", "--continue", "--local", tiny.store];
    expect(await t1(...again)).toMatchObject({ code: 0 });
  });

  it("refuses fewer iterations than were played, and records no change to the same value", async () => {
    const before = record();
    expect(await resume("training.iterations=1")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "played more iterations already: training.iterations: at least 2, got 1",
      ),
    });
    expect(await resume("training.iterations=2")).toMatchObject({ code: 0 });
    expect(record()).toBe(before);
  });
});
