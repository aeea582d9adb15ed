// Runs that compare the episodes of a task: planned in groups, played, trained and published without a critic.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readMetrics } from "../../src/learning/metrics.ts";
import { train } from "../../src/learning/train.ts";
import { planIteration, readPlan } from "../../src/rollout/plan.ts";
import { closedKey, iterationPrefix } from "../../src/run/keys.ts";
import { openStore } from "../../src/store/open-store.ts";
import { openEngine } from "../../src/training/engines.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

describe.each(["grpo", "gspo"])("a run with algorithm %s", algorithm => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout: { episodes: 4 }\n" });
    const text = readFileSync(tiny.config, "utf8");
    const training = "training: { iterations: 1, groupSize: 2, actor: { learningRate: 1e-3 } }";
    const [common, rollout] = [
      text.slice(0, text.indexOf("training:")),
      text.slice(text.indexOf("rollout:")),
    ];
    writeFileSync(
      tiny.config,
      `${common}${training}\n${rollout}`.replace("algorithm: ppo", `algorithm: ${algorithm}`),
    );
    const { code, stderr } = await t1("run", "start", tiny.config, "--name", "r", "--local", tiny.store);
    expect(code, stderr).toBe(0);
  }, 240_000);
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));
  const read = (path: string) => readFileSync(join(tiny.store, "runs/r", path));

  it("plays groupSize episodes of each of its tasks and publishes a policy, without a critic", async () => {
    const store = await openStore(tiny.store);
    await checkFinishedRun(store, "r");
    const plan = await readPlan(store, iterationPrefix("r", 0));
    const [first, second] = [plan[0].task, plan[2].task];
    expect(first).not.toBe(second);
    expect(plan.map(({ task, repeat }) => [task, repeat])).toEqual([
      [first, 0],
      [first, 1],
      [second, 0],
      [second, 1],
    ]);
    expect(new Set(plan.map(({ seed }) => seed)).size).toBe(4);
    // The next iteration goes on where these groups ended.
    const { lines } = await planIteration({ run: "r", iteration: 1 }, { store });
    expect(lines).toHaveLength(4);
    expect(lines.map(({ task }) => task)).not.toContain(first);
    expect(lines.map(({ task }) => task)).not.toContain(second);
    const { numbers } = await readMetrics(store, iterationPrefix("r", 0));
    expect(numbers).toMatchObject({ "groups.count": 2, "groups.incomplete": 0 });
    expect(Object.keys(numbers).filter(name => name.startsWith("critic."))).toEqual([]);
    expect(existsSync(join(tiny.store, "runs/r/engine/000001/critic"))).toBe(false);
  });

  it("moves the policy where the episodes of a task earned differently", async () => {
    // Random answers earn nothing: here the first episode of each group has a reward.
    const closed = join(tiny.store, closedKey(iterationPrefix("r", 0)));
    const record = JSON.parse(readFileSync(closed, "utf8"));
    for (const entry of record.episodes) entry.reward = entry.episode % 2 === 0 ? 7 : 0;
    writeFileSync(closed, JSON.stringify(record));
    for (const path of ["policies/000001", "engine/000001", "iterations/000000/metrics.json"])
      rmSync(join(tiny.store, "runs/r", path), { recursive: true });
    const store = await openStore(tiny.store);
    await using engine = await openEngine("onnx", { threads: 2 });
    await train({ run: "r", iteration: 0 }, engine, { store });
    const { numbers } = await readMetrics(store, iterationPrefix("r", 0));
    expect(numbers).toMatchObject({ "groups.count": 2, "groups.uniform": 0 });
    expect(numbers["policy.gradientNorm"]).toBeGreaterThan(0);
    const weights = (version: string) => read(`policies/${version}/model.safetensors`);
    expect(weights("000001").equals(weights("000000"))).toBe(false);
  });
});
