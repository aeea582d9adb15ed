// The exit codes of our programs, by who must act. State machines read them from a container that ended.
import { Failure, InputError } from "./errors.ts";

export const EXIT_CODES = {
  0: "done",
  1: "the answer is no: a gate or check failed, an evaluation is invalid",
  2: "bad input: a file, a setting or the machine has to be changed",
  70: "a bug of t1",
  75: "the infrastructure failed or the run was stopped; resuming goes on from there",
} as const;
export type ExitCode = keyof typeof EXIT_CODES;

export const BAD_INPUT = 2 satisfies ExitCode;
export const OUR_BUG = 70 satisfies ExitCode;
export const FAILED_OR_STOPPED = 75 satisfies ExitCode;

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof InputError) return BAD_INPUT;
  return error instanceof Failure ? FAILED_OR_STOPPED : OUR_BUG;
}
