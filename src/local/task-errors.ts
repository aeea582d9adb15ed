// What went wrong in tasks, as it was thrown: a machine's history keeps names and short texts, a person wants the
// message, and for a bug the stack.
import { BAD_INPUT, exitCodeOf, FAILED_OR_STOPPED, OUR_BUG } from "../failure/exit-code.ts";

export class TaskErrors {
  readonly #byExecution = new Map<string, unknown>();

  remember(executionArn: string, error: unknown): void {
    this.#byExecution.set(executionArn, error);
  }

  /** A later task of the same execution succeeded: what had failed was tried again. */
  forget(executionArn: string): void {
    this.#byExecution.delete(executionArn);
  }

  clear(): void {
    this.#byExecution.clear();
  }

  /** A bug before bad input before a failure: the first of the gravest. */
  gravest(): unknown {
    const errors = [...this.#byExecution.values()];
    for (const code of [OUR_BUG, BAD_INPUT, FAILED_OR_STOPPED]) {
      const found = errors.find(error => exitCodeOf(error) === code);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
