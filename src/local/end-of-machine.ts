// From how a machine's execution ended to what is told to whoever started it.
import { z } from "zod";
import type { ExecutionDescription } from "../asl/description.ts";
import { Failure, InputError, InvariantError, isFailureName } from "../failure/errors.ts";

/** What Step Functions tells of a nested execution that failed, as the cause of the state that waited for it. */
const Nested = z.looseObject({
  ExecutionArn: z.string(),
  Error: z.string().optional(),
  Cause: z.string().optional(),
});
const Thrown = z.looseObject({ errorType: z.string(), errorMessage: z.string() });

/**
 * @param thrown what a task threw in this process, which says more than a history
 * @returns the error to throw
 */
export function errorOfExecution(
  { status, error, cause, name }: Pick<ExecutionDescription, "status" | "error" | "cause" | "name">,
  thrown: unknown,
): unknown {
  if (thrown !== undefined) return thrown;
  const leaf = innermost(error ?? (status === "TIMED_OUT" ? "States.Timeout" : status), cause ?? "");
  if (leaf.name === "InputError") return new InputError(leaf.text);
  if (leaf.name === "InvariantError") return new InvariantError(leaf.text);
  if (isFailureName(leaf.name)) return new Failure(leaf.name, leaf.text, { retryable: false });
  if (leaf.name === "BudgetSpent") return new Failure("RunStopped", leaf.text, { retryable: false });
  const text = [`execution ${name} ended with ${leaf.name}`, leaf.text]
    .filter(part => part !== "")
    .join(": ");
  return new Failure(leaf.name === "States.Timeout" ? "StageTimedOut" : "RunStopped", text, {
    retryable: false,
  });
}

function innermost(name: string, text: string): { readonly name: string; readonly text: string } {
  const parsed = parseJson(text);
  const nested = Nested.safeParse(parsed);
  if (nested.success) return innermost(nested.data.Error ?? name, nested.data.Cause ?? "");
  const thrown = Thrown.safeParse(parsed);
  return { name, text: thrown.success ? thrown.data.errorMessage : text };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
