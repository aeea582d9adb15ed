// Which failed tries of a Batch job are made again, as the user guide says ("Automated job retries", "Job timeouts"). The
// same shape in a synthesized job definition and in a request; a request's replaces the definition's as a whole.
import { z } from "zod";
import type { ProgramEnd } from "./program.ts";

/** What a pattern may hold; only its end may be a `*`, for any rest. */
const Pattern = z
  .string()
  .max(512)
  .regex(/^[^*]*\*?$/, "expected * at the end only");

const ExitRule = z.looseObject({
  Action: z
    .string()
    .toUpperCase()
    .pipe(z.enum(["RETRY", "EXIT"])),
  /** Of the container's exit code in decimal. */
  OnExitCode: Pattern.regex(/^\d*\*?$/, "expected digits, then perhaps *").optional(),
  /** Of the container's reason: out of memory, an image that cannot be pulled. */
  OnReason: Pattern.optional(),
  /** Of the attempt's: a host that was lost, a task that did not start. */
  OnStatusReason: Pattern.optional(),
});

export const RetryStrategy = z
  .looseObject({
    /** All tries together. */
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
  /** Ended by its time limit, which is never tried again. */
  readonly isTimedOut: boolean;
}

/**
 * The first rule whose conditions are all met decides; where none is, and without rules, a failure is tried again.
 *
 * @param attempt that failed; the first is 1
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
