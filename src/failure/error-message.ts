// Carries errors between threads and processes. Classes do not cross, so we send names and messages.
import { Failure, InputError, InvariantError, isFailureName } from "./errors.ts";

export interface ErrorMessage {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly retryable?: boolean;
}

export function toErrorMessage(thrown: unknown): ErrorMessage {
  const { name, message, stack } = thrown instanceof Error ? thrown : new Error(String(thrown));
  return { name, message, stack, ...(thrown instanceof Failure && { retryable: thrown.retryable }) };
}

/** Makes an error of the same family, with the original stack. */
export function fromErrorMessage({ name, message, stack, retryable = false }: ErrorMessage): Error {
  const error = rebuild(name, message, retryable);
  if (stack !== undefined) error.stack = stack;
  return error;
}

function rebuild(name: string, message: string, retryable: boolean): Error {
  if (name === "InputError") return new InputError(message);
  if (name === "InvariantError") return new InvariantError(message);
  return isFailureName(name) ? new Failure(name, message, { retryable }) : new Error(message);
}
