// The result of one child of a Distributed Map, as ResultWriter files and the state's output show it.
import type { Json, JsonObject, Payload } from "./json-value.ts";
import type { StateError } from "./state-error.ts";

export interface ChildResult {
  readonly executionArn: string;
  readonly machineArn: string;
  readonly name: string;
  readonly status: "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "ABORTED" | "PENDING";
  readonly input: Payload | undefined;
  readonly output: Payload | undefined;
  readonly error: StateError | undefined;
  readonly startMs: number | undefined;
  readonly stopMs: number | undefined;
}

/** Source: developer guide, "ResultWriter", example of SUCCEEDED_0.json and FAILED_0.json. */
export function describeChild(child: ChildResult): JsonObject {
  const isRedrivable = child.status !== "SUCCEEDED";
  return {
    ExecutionArn: child.executionArn,
    ...(child.input !== undefined && { Input: child.input.text, InputDetails: { Included: true } }),
    Name: child.name,
    ...(child.output !== undefined && { Output: child.output.text, OutputDetails: { Included: true } }),
    Error: child.error?.errorName,
    Cause: child.error?.causeText,
    RedriveCount: 0,
    RedriveStatus: isRedrivable ? "REDRIVABLE_BY_MAP_RUN" : "NOT_REDRIVABLE",
    RedriveStatusReason: isRedrivable ? undefined : "Execution is SUCCEEDED and cannot be redriven",
    StartDate: child.startMs === undefined ? undefined : new Date(child.startMs).toISOString(),
    StateMachineArn: child.machineArn,
    Status: child.status,
    StopDate: child.stopMs === undefined ? undefined : new Date(child.stopMs).toISOString(),
  };
}

/** What the state's output holds for a child: its output, or the whole description of one that failed. */
export function shownResult(child: ChildResult): Json {
  return child.status === "SUCCEEDED" ? (child.output?.value ?? null) : describeChild(child);
}
