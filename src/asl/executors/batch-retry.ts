// Decides which failed tries of a Batch job are repeated, as the user guide says ("Automated job retries", "Job
// timeouts"). A synthesized job definition and a request have the same shape; the request's replaces the definition's
// as a whole. Batch allows at most ten tries of a job, one after the other without a wait: ten times its time limit.
import { z } from "zod";
import type { ProgramEnd } from "./program.ts";

/** A pattern may end in `*`, which stands for any rest. */
const Pattern = z
  .string()
  .max(512)
  .regex(/^[^*]*\*?$/, "expected * at the end only");

const ExitRule = z.looseObject({
  Action: z
    .string()
    .toUpperCase()
    .pipe(z.enum(["RETRY", "EXIT"])),
  /** Matched against the container's exit code in decimal. */
  OnExitCode: Pattern.regex(/^\d*\*?$/, "expected digits, then perhaps *").optional(),
  /** Matched against the container's reason: out of memory, an image that cannot be pulled. */
  OnReason: Pattern.optional(),
  /** Matched against the attempt's reason: a host that was lost, a task that did not start. */
  OnStatusReason: Pattern.optional(),
});

export const RetryStrategy = z
  .looseObject({
    /** Number of tries, the first one included. */
    Attempts: z.int().min(1).max(10).optional(),
    EvaluateOnExit: z.array(ExitRule).max(5).optional(),
  })
  .refine(
    ({ Attempts: attempts, EvaluateOnExit: rules }) => rules === undefined || attempts !== undefined,
    "expected Attempts beside EvaluateOnExit",
  );
export type RetryStrategy = z.output<typeof RetryStrategy>;

/** How an attempt ended, as DescribeJobs tells it. */
export interface AttemptEnd extends ProgramEnd {
  readonly statusReason: string;
  /** The time limit ended it; such a try is never repeated. */
  readonly isTimedOut: boolean;
}

/**
 * The first rule whose conditions all hold decides; without such a rule a failure is tried again.
 *
 * @param attempt number of the failed one; the first is 1
 */
export function mayTryAgain(
  { Attempts: attempts = 1, EvaluateOnExit: rules = [] }: RetryStrategy,
  attempt: number,
  { exitCode, reason = "", statusReason, isTimedOut }: AttemptEnd,
): boolean {
  if (isTimedOut || attempt >= attempts) return false;
  const code = exitCode === undefined ? "" : String(exitCode);
  const rule = rules.find(
    ({ OnExitCode: onCode, OnReason: onReason, OnStatusReason: onStatusReason }) =>
      fits(onCode, code) && fits(onReason, reason) && fits(onStatusReason, statusReason),
  );
  return rule?.Action !== "EXIT";
}

function fits(pattern: string | undefined, text: string): boolean {
  if (pattern === undefined) return true;
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}
