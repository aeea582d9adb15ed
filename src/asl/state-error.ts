// The failure of a state: an error name, which Retry and Catch match, and a cause for people. Both may be missing.
import type { ServiceErrorName, StatesErrorName } from "./error-names.ts";
import type { JsonObject } from "./json-value.ts";

/** An executor also reports the names of a handler's own errors, which can be any text. */
export type ErrorName = StatesErrorName | ServiceErrorName | (string & {});

export class StateError extends Error {
  override readonly name = "StateError";
  readonly errorName: ErrorName | undefined;
  readonly causeText: string | undefined;

  /** @param options.cause the error of a task that ran in this process */
  constructor(errorName: ErrorName | undefined, causeText?: string, options?: ErrorOptions) {
    super(`${errorName ?? "(no error name)"}: ${causeText ?? "(no cause)"}`, options);
    this.errorName = errorName;
    this.causeText = causeText;
  }

  /** `$states.errorOutput` and the default output of a Catch. */
  get output(): JsonObject {
    return { Error: this.errorName ?? null, Cause: this.causeText ?? null };
  }

  /** The details of a failing event, without fields that are missing. */
  get details(): { readonly error?: string; readonly cause?: string } {
    return {
      ...(this.errorName !== undefined && { error: this.errorName }),
      ...(this.causeText !== undefined && { cause: this.causeText }),
    };
  }
}
