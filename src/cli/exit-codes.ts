// What `t1` says to the shell, and how an error becomes it.
import { Failure, InputError } from "../failure/errors.ts";

export const EXIT_CODES = {
  0: "done",
  1: "the answer is no: a gate or check failed, an evaluation is invalid",
  2: "bad input: a file, a setting or the machine has to be changed",
  70: "a bug of t1",
  75: "the infrastructure failed or the run was stopped; resuming goes on from there",
} as const;
export type ExitCode = keyof typeof EXIT_CODES;

/** Prints an error for a person and says which exit code it is. A mistake shows no stack, a bug does. */
export function reportError(error: unknown, write: (text: string) => void): ExitCode {
  if (error instanceof InputError) {
    write(`t1: ${error.message}\n`);
    return 2;
  }
  if (error instanceof Failure) {
    write(`t1: ${error.name}: ${error.message}\n`);
    return 75;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  write(
    `${text}\n\nThis is a bug of t1. A report should carry the text above, the command, and the run's run.json.\n`,
  );
  return 70;
}
