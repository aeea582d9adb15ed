import { describe, expect, it } from "vitest";
import { deriveSeed } from "../random/seed.ts";
import { bootstrapMean } from "./bootstrap.ts";
import {
  compareEvaluations,
  describeNothingResolved,
  type EvaluatedEpisode,
  summariseEvaluation,
} from "./summary.ts";

const seed = deriveSeed("test");
const episode = (task: string, resolved?: boolean, groups: string[] = []): EvaluatedEpisode => ({
  task,
  groups,
  ...(resolved !== undefined && { outcome: { resolved, reward: resolved ? 1 : 0.25 } }),
});

describe("bootstrap over tasks", () => {
  it("covers the mean of a normal sample with about the textbook width", () => {
    // 100 numbers 0..99: the standard error of their mean is 28.87 / 10, so the interval is near ±1.96 times that.
    const interval = bootstrapMean(
      Array.from({ length: 100 }, (_, i) => i),
      seed,
    );
    expect(interval.mean).toBe(49.5);
    expect(Math.abs(interval.low - (49.5 - 5.66))).toBeLessThan(0.4);
    expect(Math.abs(interval.high - (49.5 + 5.66))).toBeLessThan(0.4);
  });

  it("gives the same interval for the same seed, and none over no task", () => {
    expect(bootstrapMean([1, 2, 5], seed)).toEqual(bootstrapMean([1, 2, 5], seed));
    expect(() => bootstrapMean([], seed)).toThrow("no task");
  });

  it("is wider by tasks than it would be by episodes: repeats of a task are no new evidence", () => {
    const tasks = Array.from({ length: 20 }, (_, i) => `t${i}`);
    const repeated = tasks.flatMap((task, i) => Array.from({ length: 10 }, () => episode(task, i % 2 === 0)));
    const single = tasks.map((task, i) => episode(task, i % 2 === 0));
    expect(summariseEvaluation(repeated, seed).resolved).toEqual(summariseEvaluation(single, seed).resolved);
  });
});

describe("evaluation summary", () => {
  it("leaves missing episodes out of the rate, and shows what they could make of it", () => {
    const summary = summariseEvaluation(
      [episode("a", true), episode("a"), episode("b", true), episode("b", false)],
      seed,
    );
    expect(summary.resolved.mean).toBe(0.75);
    expect(summary.worstCase).toBe(0.5);
    expect(summary.missingCount).toBe(1);
  });

  it("is invalid above two in a hundred missing", () => {
    const run = (missing: number) => [
      ...Array.from({ length: 100 - missing }, (_, i) => episode(`t${i}`, true)),
      ...Array.from({ length: missing }, (_, i) => episode(`m${i}`)),
    ];
    expect(summariseEvaluation(run(2), seed).valid).toBe(true);
    expect(summariseEvaluation(run(3), seed).valid).toBe(false);
  });

  it("counts a task in each of its groups", () => {
    const { groups } = summariseEvaluation(
      [episode("a", true, ["single", "move"]), episode("b", false, ["pair", "move"])],
      seed,
    );
    expect(groups.move.resolved.mean).toBe(0.5);
    expect(groups.pair.taskCount).toBe(1);
  });
});

describe("paired comparison", () => {
  it("takes differences task by task over what both have", () => {
    const before = [episode("a", false, ["x"]), episode("b", true, ["x"]), episode("only before", true)];
    const after = [episode("a", true, ["x"]), episode("b", true, ["x"]), episode("only after", true)];
    const comparison = compareEvaluations(before, after, seed);
    expect([comparison.taskCount, comparison.resolved.mean]).toEqual([2, 0.5]);
    expect(comparison.groups.x.taskCount).toBe(2);
  });

  it("of an evaluation with itself is 0, with as much doubt each way", () => {
    const same = [episode("a", true), episode("b", false)];
    const { resolved, reward } = compareEvaluations(same, same, seed);
    expect(resolved).toMatchObject({ mean: 0, low: -resolved.high });
    expect(reward).toEqual({ mean: 0, low: 0, high: 0 });
  });

  it("of rewards is no finding where fewer than six tasks changed, all the same way", () => {
    const reward = (value: number) => ({ resolved: false, reward: value });
    const tasks = (changed: number) =>
      Array.from({ length: 40 }, (_, task) => ({
        ...{ task: `t${task}`, groups: [] },
        outcome: reward(task < changed ? 1 : 0),
      }));
    expect(compareEvaluations(tasks(0), tasks(5), seed).reward.low).toBe(0);
    expect(compareEvaluations(tasks(0), tasks(12), seed).reward.low).toBeGreaterThan(0);
  });

  it("of evaluations in which nothing was resolved is said in words", () => {
    const none = Array.from({ length: 48 }, (_, task) => episode(`t${task}`, false));
    const summary = summariseEvaluation(none, seed);
    expect(describeNothingResolved(summary, summary)).toBe(
      "nothing was resolved by either: 48 tasks leave room for up to 7.4 % (95 %)",
    );
    const some = summariseEvaluation([...none, episode("more", true)], seed);
    expect(describeNothingResolved(summary, some)).toBeUndefined();
  });
});
