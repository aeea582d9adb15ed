import { expect, it } from "vitest";
import { CHANGEABLE, changeConfig, whyItStays } from "./change-config.ts";
import { describeKeys } from "./describe-keys.ts";
import { parseRunConfig } from "./parse-config.ts";

const config = (algorithm: string) =>
  parseRunConfig(
    `algorithm: ${algorithm}\npolicy: base\ntasks:\n  pool: tasks\ntraining:\n  iterations: 3\n`,
    "run.yaml",
  );

it("lists settings that there are, and values only", () => {
  const values = describeKeys().flatMap(({ path, type }) => (type === "group" ? [] : [path]));
  expect(values).toEqual(expect.arrayContaining(Object.keys(CHANGEABLE)));
});

it("tells what changed, and leaves the rest", () => {
  const before = config("ppo");
  const { config: after, changes } = changeConfig("r", before, [
    "training.iterations=5",
    "rollout.attempts=3",
    "agent.episodeSeconds=90",
  ]);
  expect(changes).toEqual([
    { key: "training.iterations", old: 3, new: 5 },
    { key: "agent.episodeSeconds", old: undefined, new: 90 },
  ]);
  expect(after).toEqual({
    ...before,
    training: { ...before.training, iterations: 5 },
    agent: { ...before.agent, episodeSeconds: 90 },
  });
});

it("keeps every other setting, groups too, and refuses it by its name", () => {
  const fixed = describeKeys().flatMap(({ path }) => (Object.hasOwn(CHANGEABLE, path) ? [] : [path]));
  expect(fixed.length).toBeGreaterThan(30);
  for (const path of fixed) expect(whyItStays(path, "ppo"), path).toContain("another experiment");
  for (const path of ["rollout", "policy", "agent.contextTokens"])
    expect(() => changeConfig("r", config("ppo"), [`${path}=1`])).toThrow(
      `the setting cannot change in a run: ${path}: `,
    );
});

it("keeps the iterations that a falling learning rate was planned for", () => {
  expect(() => changeConfig("r", config("sft"), ["training.iterations=5"])).toThrow(
    "training.iterations: the learning rate falls over all iterations",
  );
});

it("guesses what a mistyped setting was meant to be, and checks values as a start does", () => {
  expect(() => changeConfig("r", config("ppo"), ["rollout.concurency=2"])).toThrow(
    "did you mean concurrency?",
  );
  expect(() => changeConfig("r", config("ppo"), ["training.iterations=-1"])).toThrow("training.iterations");
  expect(() => changeConfig("r", config("ppo"), ["evaluation.every=2"])).toThrow("evaluation.pool: missing");
});
