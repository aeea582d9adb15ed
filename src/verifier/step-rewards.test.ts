import { describe, expect, it } from "vitest";
import type { VerifierReport } from "./report.ts";
import { combineReports, computeStepsReward, passesGate } from "./step-rewards.ts";

const report = (outcome: number | null, more: Partial<VerifierReport> = {}): VerifierReport => ({
  ...{ outcome, tests: [], exitCode: 0, durationMs: 1 },
  ...more,
});
const named = (...reports: VerifierReport[]) =>
  reports.map((one, index) => ({ name: `s${index}`, report: one }));
const binary = { kind: "binary", scale: 20 } as const;

describe("a gate", () => {
  // Harbor 0.26, trial/multi_step.py: a missing key counts as minus infinity.
  it.each([
    [report(0.5, { rewards: { reward: 0.5 } }), { reward: 0.5 }, true],
    [report(0.4, { rewards: { reward: 0.4 } }), { reward: 0.5 }, false],
    [report(1, { rewards: { reward: 1, style: 0 } }), { reward: 1, style: 0.1 }, false],
    [report(1, { rewards: { reward: 1 } }), { style: -1 }, false],
    [report(1), { reward: 1 }, true],
    [report(null, { cause: "no_report" }), { reward: 0 }, false],
    [report(1, { rewards: { reward: 1 }, cause: "report_conflict" }), { reward: 0.5 }, false],
    [report(0), undefined, true],
  ])("of %j at %j is passed: %s", (graded, thresholds, passes) => {
    expect(passesGate(graded, thresholds)).toBe(passes);
  });
});

describe("the rewards of several steps", () => {
  it("are their mean over the steps that ran, or the last one's", () => {
    const reports = [report(1), report(0), report(0.5)];
    expect(computeStepsReward(reports, "mean", binary).value).toBe(0.5);
    expect(computeStepsReward(reports, "final", binary).value).toBe(0.5);
    expect(computeStepsReward([report(1), report(0)], "final", binary).value).toBe(0);
    expect(computeStepsReward([report(0.4)], "mean", binary).value).toBe(0.4);
  });

  it("count assertions of all of them, each named by its step", () => {
    const tests = [{ name: "a", status: "passed" as const }];
    const reports = [report(1, { tests }), report(0, { tests: [{ name: "a", status: "failed" }] })];
    expect(computeStepsReward(reports, "mean", { kind: "dense", scale: 4 })).toMatchObject({
      value: 0.125,
      passed: 1,
      total: 2,
    });
    expect(combineReports(named(...reports), "mean")?.tests.map(test => test.name)).toEqual([
      "s0: a",
      "s1: a",
    ]);
  });

  it("of a worthless step are 0, and those of the others stay", () => {
    const reports = [report(1), report(1, { cause: "report_conflict" })];
    expect(computeStepsReward(reports, "mean", binary).value).toBe(0.5);
    expect(combineReports(named(...reports), "mean")?.outcome).toBe(0.5);
  });
});
