import { describe, expect, it } from "vitest";
import { readReport } from "./read-report.ts";
import { isResolved } from "./report.ts";
import { computeReward, rewardConfigHash } from "./reward.ts";

const tests = (passed: number, total: number) =>
  Array.from({ length: total }, (_, i) => ({ name: `t${i}`, status: i < passed ? "passed" : "failed" }));
const ctrf = (passed: number, total: number): string =>
  JSON.stringify({ results: { tool: { name: "x" }, tests: tests(passed, total) } });
const read = (files: Record<string, string>) => {
  const report = readReport(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])));
  return { ...report, tests: [...report.tests], exitCode: 0, durationMs: 1 };
};
const dense = { kind: "dense", scale: 20 } as const;

describe("reward", () => {
  // T1's own examples (cases V10): passing assertions over the fixed scale, and the outcome where there is no report.
  it.each([
    [{ "ctrf.json": ctrf(10, 20), "reward.txt": "0" }, 0.5, undefined],
    [{ "ctrf.json": ctrf(2, 4), "reward.txt": "0" }, 0.1, undefined],
    [{ "ctrf.json": ctrf(25, 25), "reward.txt": "1" }, 1.25, undefined],
    [{ "ctrf.json": "{ half", "reward.txt": "1" }, 1, "unreadable_report"],
    [{ "reward.txt": "1\n" }, 1, "no_report"],
    [{}, 0, "no_report"],
  ])("of %j is %d, cause %s", (files, value, cause) => {
    const reward = computeReward(read(files), dense);
    expect([reward.value, reward.cause]).toEqual([value, cause]);
  });

  it("by ratio gives part of the credit, bounded by the outcome", () => {
    const ratio = { kind: "ratio", scale: 20 } as const;
    expect(computeReward(read({ "ctrf.json": ctrf(3, 4), "reward.txt": "0" }), ratio).value).toBeCloseTo(0.3);
    expect(computeReward(read({ "ctrf.json": ctrf(4, 4), "reward.txt": "1" }), ratio).value).toBe(1);
  });

  it("lies under a hash that only the setting decides", () => {
    expect(rewardConfigHash(dense)).toBe(rewardConfigHash({ scale: 20, kind: "dense" }));
    expect(rewardConfigHash(dense)).not.toBe(rewardConfigHash({ ...dense, scale: 7 }));
  });
});

describe("report", () => {
  it("with no test is a collection error, never a pass (largest-eigenval__pn7URic)", () => {
    const report = read({ "ctrf.json": ctrf(0, 0), "reward.txt": "1" });
    expect(report.cause).toBe("collection_error");
    expect(computeReward(report, dense).value).toBe(0);
  });

  it("that contradicts the reward is a conflict and earns nothing (verifiers#1401)", () => {
    for (const files of [
      { "ctrf.json": ctrf(3, 4), "reward.txt": "1" },
      { "ctrf.json": ctrf(4, 4), "reward.txt": "0" },
    ]) {
      const report = read(files);
      expect(report.cause).toBe("report_conflict");
      expect([computeReward(report, dense).value, isResolved(report)]).toEqual([0, false]);
    }
  });

  it("takes reward.json before reward.txt, and only its key reward (verifiers#2224)", () => {
    expect(read({ "reward.json": '{"reward": 0, "seconds": 93}', "reward.txt": "1" }).outcome).toBe(0);
  });

  it("does not take words, nothing or infinity for a number", () => {
    for (const text of ["", "yes", "Infinity", "1e999"])
      expect(read({ "reward.txt": text })).toMatchObject({ outcome: null, cause: "unreadable_reward" });
  });

  it("with a skipped test is no full pass when the tests gave no reward", () => {
    const skipped = JSON.stringify({
      results: { tests: [...tests(2, 2), { name: "s", status: "skipped" }] },
    });
    expect(read({ "ctrf.json": skipped }).outcome).toBe(0);
  });
});
