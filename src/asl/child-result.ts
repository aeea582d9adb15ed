// The result of one child of a Distributed Map, as ResultWriter files and untransformed outputs show it.
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
  readonly redriveCount: number;
}

/** Source: developer guide, "ResultWriter", example of SUCCEEDED_0.json and FAILED_0.json. */
export function describeChild(child: ChildResult): JsonObject {
  const isRedrivable = child.status !== "SUCCEEDED";
  return {
    ExecutionArn: child.executionArn,
    ...(child.input !== undefined && { Input: child.input.text, InputDetails: { Included: true } }),
    Name: child.name,
    ...(child.output !== undefined && { Output: child.output.text, OutputDetails: { Included: true } }),
    ...(child.error?.errorName !== undefined && { Error: child.error.errorName }),
    ...(child.error?.causeText !== undefined && { Cause: child.error.causeText }),
    RedriveCount: child.redriveCount,
    RedriveStatus: isRedrivable ? "REDRIVABLE_BY_MAP_RUN" : "NOT_REDRIVABLE",
    ...(!isRedrivable && { RedriveStatusReason: "Execution is SUCCEEDED and cannot be redriven" }),
    ...(child.startMs !== undefined && { StartDate: new Date(child.startMs).toISOString() }),
    StateMachineArn: child.machineArn,
    Status: child.status,
    ...(child.stopMs !== undefined && { StopDate: new Date(child.stopMs).toISOString() }),
  };
}

/** What a finished child adds to the results; one that failed is always shown whole. */
export function transformChild(
  child: ChildResult,
  transformation: "NONE" | "COMPACT" | "FLATTEN",
): readonly Json[] {
  if (transformation === "NONE" || child.status !== "SUCCEEDED") return [describeChild(child)];
  const value = child.output?.value ?? null;
  return transformation === "FLATTEN" && Array.isArray(value) ? value : [value];
}
