import { expect, it } from "vitest";
import { Failure, InputError } from "../failure/errors.ts";
import { errorOfExecution } from "./end-of-machine.ts";

const thrown = (errorType: string, errorMessage: string) => JSON.stringify({ errorType, errorMessage });
const nested = (error: string, cause: string) =>
  JSON.stringify({ ExecutionArn: "arn", Status: "FAILED", Error: error, Cause: cause });

it.each([
  ["a stage's bad input", "InputError", thrown("InputError", "no pool"), "InputError", "no pool"],
  ["a bug", "InvariantError", thrown("InvariantError", "x=1"), "InvariantError", "x=1"],
  [
    "a failure, two executions down",
    "States.TaskFailed",
    nested("States.TaskFailed", nested("StoreUnavailable", thrown("StoreUnavailable", "disk full"))),
    "StoreUnavailable",
    "disk full",
  ],
  ["a spent budget", "BudgetSpent", "the run's budget is spent", "RunStopped", "the run's budget is spent"],
  [
    "a time limit",
    "States.TaskFailed",
    nested("States.Timeout", ""),
    "StageTimedOut",
    "execution r-s1 ended with States.Timeout",
  ],
  [
    "what nobody foresaw",
    "States.QueryEvaluationError",
    "$x is undefined",
    "RunStopped",
    "execution r-s1 ended with States.QueryEvaluationError: $x is undefined",
  ],
])("%s is told by its family", (_, error, cause, name, message) => {
  const ended = { status: "FAILED", name: "r-s1", error, cause } as const;
  expect(errorOfExecution(ended, undefined)).toMatchObject({ name, message });
});

it("what was thrown here says more than the history", () => {
  const error = new InputError("the file and the line");
  const ended = { status: "FAILED", name: "r-s1", error: "InputError", cause: "" } as const;
  expect(errorOfExecution(ended, error)).toBe(error);
});

it("an execution without an error of its own is told by how it ended", () => {
  const ended = errorOfExecution({ status: "TIMED_OUT", name: "r-s1" }, undefined);
  expect(ended).toBeInstanceOf(Failure);
  expect(ended).toMatchObject({ name: "StageTimedOut" });
});
