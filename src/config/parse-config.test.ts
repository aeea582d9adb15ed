import { describe, expect, it } from "vitest";
import { InputError } from "../failure/errors.ts";
import { parseRunConfig } from "./parse-config.ts";

const PPO = "algorithm: ppo\npolicy: base\ntasks:\n  pool: tasks\ntraining:\n  iterations: 3\n";

describe("run config", () => {
  it("fills in T1's defaults", () => {
    const config = parseRunConfig(PPO, "run.yaml");
    if (config.algorithm !== "ppo") throw new Error("algorithm");
    expect(config.training.actor.learningRate).toBe(1e-6);
    expect(config.training.critic.learningRate).toBe(1.5e-5);
    expect(config.training).toMatchObject({
      gamma: 1,
      lambda: 1,
      truncation: "terminal",
      lossMean: "episode",
      replay: true,
    });
    expect(config.rollout).toMatchObject({ episodes: 512, stragglers: "wait" });
    expect(config.reward).toEqual({ kind: "dense", scale: 20 });
  });

  it.each([
    [`${PPO}rollot:\n  episodes: 4\n`, "run.yaml:7: rollot: unknown key; did you mean rollout?"],
    [
      `${PPO}  actor:\n    learning_rate: 1\n`,
      "run.yaml:8: training.actor.learning_rate: unknown key; did you mean learningRate?",
    ],
    [PPO.replace("policy: base\n", ""), "run.yaml: policy: missing: expected a model folder"],
    [PPO.replace("policy: base", "policy: 3"), "run.yaml:2: policy: expected string or object, got 3"],
    [
      PPO.replace("policy: base", "policy: { runn: a }"),
      "run.yaml:2: policy.run: missing: expected string\n  run.yaml:2: policy.runn: unknown key; did you mean run?",
    ],
    [`${PPO}model:\n  layers: 3\n`, "run.yaml:7: model: only of runs that learn from demonstrations"],
    [
      PPO.replace("iterations: 3", "iterations: 1.0e+30"),
      "has a problem: \n  run.yaml:6: training.iterations: Too big: expected number to be <=999999",
    ],
    [`${PPO}sampling:\n  topP: 0.9\n`, "run.yaml:7: sampling: training needs temperature above 0"],
    [
      `${PPO}rollout:\n  episodes: 8\n  launch: 4\n`,
      "run.yaml:9: rollout.launch: must be at least rollout.episodes (8), got 4",
    ],
    [
      `${PPO.replace("ppo", "grpo")}rollout:\n  episodes: 12\n`,
      "run.yaml:8: rollout.episodes: must be a multiple of training.groupSize (8), got 12",
    ],
    [`${PPO.replace("ppo", "gspo")}  gamma: 1\n`, "run.yaml:7: training.gamma: only with algorithm ppo"],
    [`${PPO}rollout:\n  stragglers: cut\n`, "cut needs rollout.launch"],
    [PPO.replace("iterations: 3", "iterations: -1"), "run.yaml:6: training.iterations"],
    [PPO.replace("algorithm: ppo", "algorithm: pppo"), "run.yaml:1: algorithm"],
    ["algorithm: ppo\n  x: [", "not YAML: run.yaml:1"],
    ["algorithm: sft\ntasks:\n  pool: t\ntraining:\n  iterations: 1\n", "either policy"],
    ["", "the file"],
    ["algorithm: *ppo\n", "not YAML: run.yaml: Unresolved alias"],
    [`${PPO}rollout:\n  episodes: 1000000\n`, "run.yaml:8: rollout.episodes"],
    [`${PPO}agent:\n  protocol: terminus\n`, "run.yaml:8: agent.protocol"],
    [
      `${PPO}agent:\n  contextTokens: 40000\n  summary: {}\n`,
      "run.yaml:9: agent.summary: only terminus-json and terminus-xml make summaries, not compact",
    ],
    [
      `${PPO}agent:\n  protocol: terminus-json\n  summary: {}\n`,
      "run.yaml:7: agent.contextTokens: must be at least 13296 with agent.summary: what a summary keeps (5296) and freeTokens (8000), or one would follow the other, got 8192",
    ],
    [
      `${PPO}agent:\n  protocol: terminus-xml\n  contextTokens: 84000\n  observationTokens: 5000\n  summary:\n    freeTokens: 8000\n`,
      "run.yaml:12: agent.summary.freeTokens: must be at least 10296: a turn (6024) and the three calls (4272) have to fit, got 8000",
    ],
    [
      "algorithm: sft\npolicy: p\ntasks:\n  pool: t\ntraining:\n  iterations: 1\nagent:\n  protocol: bash-tool\n",
      "run.yaml:8: agent.protocol: demonstrations are written for compact",
    ],
  ])("refuses %j, saying where and what was expected", (text, message) => {
    expect(() => parseRunConfig(text, "run.yaml")).toThrow(message);
  });

  it("takes a summary whose budget adds up, with its calls trained", () => {
    const text = `${PPO}agent:\n  protocol: terminus-json\n  contextTokens: 13296\n  summary: {}\n`;
    const { agent } = parseRunConfig(text, "run.yaml");
    expect(agent.summary).toEqual({ freeTokens: 8000, answerTokens: 1024, train: true });
    expect(parseRunConfig(PPO, "run.yaml").agent).toMatchObject({ protocol: "compact" });
    expect(parseRunConfig(PPO, "run.yaml").agent.summary).toBeUndefined();
  });

  it("takes overrides over the file, and checks them as it checks the file", () => {
    const config = parseRunConfig(PPO, "run.yaml", [
      "training.iterations=7",
      "reward.kind=binary",
      "training.actor.learningRate=2e-4",
    ]);
    expect(config).toMatchObject({
      reward: { kind: "binary" },
      training: { iterations: 7, actor: { learningRate: 2e-4 } },
    });
    expect(() => parseRunConfig(PPO, "run.yaml", ["training.iteration=7"])).toThrow(
      "did you mean iterations?",
    );
    expect(() => parseRunConfig(PPO, "run.yaml", ["iterations"])).toThrow("not a setting: iterations");
  });

  it.each([
    ["training.iterations=[", "training.iterations=["],
    ["training.iterations=*three", "Unresolved alias"],
    ["policy.run=base", "policy is a value"],
    ["tasks.pool.folder.name=x", "tasks.pool is a value"],
  ])("refuses the override %s as a mistake of whoever wrote it", (override, message) => {
    const parse = () => parseRunConfig(PPO, "run.yaml", [override]);
    expect(parse).toThrow(InputError);
    expect(parse).toThrow(message);
    expect(parse).toThrow(override);
  });

  it("takes an override below a key that is not there", () => {
    expect(parseRunConfig(PPO, "run.yaml", ["rollout.episodes=4"]).rollout.episodes).toBe(4);
  });

  it("reports all problems at once", () => {
    expect(() => parseRunConfig(`${PPO}seed: -1\nthread: 2\n`, "run.yaml")).toThrow("2 problems");
  });
});
