// Tasks of several steps: the gate that ends an episode, and the reward of all its steps together (Harbor 0.26,
// trial/multi_step.py: `min_reward` and `multi_step_reward_strategy`).
import type { RewardConfig } from "../settings/grading-config.ts";
import { earnsNothing, type VerifierReport } from "./report.ts";
import { computeReward, type Reward } from "./reward.ts";

export type RewardStrategy = "mean" | "final";

/** The task ends below one of the thresholds, or without that reward. */
export function passesGate(
  report: VerifierReport,
  thresholds: Readonly<Record<string, number>> | undefined,
): boolean {
  if (thresholds === undefined) return true;
  const rewards = gateRewards(report);
  return Object.entries(thresholds).every(
    ([key, threshold]) => (rewards[key] ?? Number.NEGATIVE_INFINITY) >= threshold,
  );
}

/** Gates compare the outcome of tests that gave no number of their own. */
function gateRewards({ rewards, outcome, cause }: VerifierReport): Readonly<Record<string, number>> {
  if (earnsNothing(cause)) return {};
  return rewards ?? (outcome === null ? {} : { reward: outcome });
}

/** Combines the steps that ran. @param reports at least one */
export function combineReports(
  reports: readonly { readonly name: string | undefined; readonly report: VerifierReport }[],
  strategy: RewardStrategy,
): VerifierReport | undefined {
  const last = reports.at(-1)?.report;
  if (last === undefined || reports.length === 1 || strategy === "final") return last;
  const outcomes = reports.map(({ report }) => (earnsNothing(report.cause) ? 0 : (report.outcome ?? 0)));
  const [cause] = reports.flatMap(({ report }) => (report.cause === undefined ? [] : [report.cause]));
  return {
    outcome: mean(outcomes),
    tests: reports.flatMap(({ name, report }) =>
      report.tests.map(test => ({ ...test, name: `${name}: ${test.name}` })),
    ),
    // A cause that makes one step worthless does not concern the others; the mean has counted that step as 0.
    cause: cause === undefined || earnsNothing(cause) ? undefined : cause,
    exitCode: last.exitCode,
    durationMs: reports.reduce((sum, { report }) => sum + report.durationMs, 0),
  };
}

/** @param reports of the steps that ran, at least one */
export function computeStepsReward(
  reports: readonly VerifierReport[],
  strategy: RewardStrategy,
  config: RewardConfig,
): Reward {
  const rewards = reports.map(report => computeReward(report, config));
  const last = rewards.at(-1);
  if (last === undefined) throw new RangeError("an episode that was graded has a step");
  if (strategy === "final" || rewards.length === 1) return last;
  const sum = (count: (reward: Reward) => number): number =>
    rewards.reduce((total, reward) => total + count(reward), 0);
  const [cause] = rewards.flatMap(reward => (reward.cause === undefined ? [] : [reward.cause]));
  return {
    value: mean(rewards.map(reward => reward.value)),
    kind: config.kind,
    passed: sum(reward => reward.passed),
    total: sum(reward => reward.total),
    outcome: mean(rewards.map(reward => reward.outcome ?? 0)),
    cause,
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
