// The result of a verifier run, read from the files that the task's own tests wrote.
import { z } from "zod";

/** Reasons why a verifier gave no plain answer. Reports print these sentences. */
export const VERIFIER_CAUSES = {
  no_report: "the tests wrote neither a report nor a reward",
  unreadable_report: "the tests' report could not be read",
  unreadable_reward: "the reward file holds no finite number",
  collection_error: "the report counts no test: none was collected",
  report_conflict: "the reward and the report contradict each other",
  verifier_timeout: "the tests did not end within their time",
  verifier_bootstrap_failed: "the tests could not start on what the agent left, and could without it",
  tests_not_placed: "the tests could not be put into the sandbox the agent left",
  changes_not_carried: "what the agent left could not be carried into a clean sandbox",
  sandbox_broken: "the sandbox was brought to its end by what ran in it",
  report_too_large: "the tests' log folder is larger than is read",
} as const;
export type VerifierCause = keyof typeof VERIFIER_CAUSES;
export const VerifierCauseName = z.enum(Object.keys(VERIFIER_CAUSES) as [VerifierCause, ...VerifierCause[]]);

export const TEST_STATUSES = ["passed", "failed", "skipped", "pending", "other"] as const;

export const TestResult = z.strictObject({ name: z.string(), status: z.enum(TEST_STATUSES) });
export type TestResult = z.infer<typeof TestResult>;

export const VerifierReport = z.strictObject({
  /** The number that the tests gave as reward; when they gave none, 1 if all of them passed and 0 otherwise. */
  outcome: z.number().nullable(),
  /** Every key of reward.json, or `reward` of reward.txt: what gates between steps are held against. */
  rewards: z.record(z.string(), z.number()).optional(),
  /** One per assertion; empty when there was no report. */
  tests: z.array(TestResult),
  cause: VerifierCauseName.optional(),
  /** Exit code of the test script. We record it and never use it. */
  exitCode: z.int().nullable(),
  durationMs: z.number().nonnegative(),
});
export type VerifierReport = z.infer<typeof VerifierReport>;

/** Causes with which an episode earns nothing, whatever else the report says. */
const WORTHLESS: ReadonlySet<VerifierCause | undefined> = new Set([
  "report_conflict",
  "collection_error",
  "verifier_bootstrap_failed",
  "changes_not_carried",
  "sandbox_broken",
] as const);

export function earnsNothing(cause: VerifierCause | undefined): boolean {
  return WORTHLESS.has(cause);
}

/** A task is resolved when its own tests say so. */
export function isResolved({ outcome, cause }: VerifierReport): boolean {
  return outcome !== null && outcome >= 1 && !earnsNothing(cause);
}

/** Limits of a report that we read, because anybody may have written it. */
export const MOST_TESTS = 10_000;
export const NAME_CHARACTERS = 1000;
