import { Failure, InputError } from "./errors.ts";
import { type ExitCode, exitCodeOf } from "./exit-code.ts";

/** Prints an error for a person. A mistake shows no stack, a bug does. @returns the exit code of the program */
export function reportError(error: unknown, write: (text: string) => void): ExitCode {
  if (error instanceof InputError) write(`t1: ${error.message}\n`);
  else if (error instanceof Failure) write(`t1: ${error.name}: ${error.message}\n`);
  else {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    write(
      `${text}\n\nThis is a bug of t1. A report should carry the text above, the command, and the run's run.json.\n`,
    );
  }
  return exitCodeOf(error);
}
