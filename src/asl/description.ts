// An execution as DescribeExecution shows it.
import type { Execution, ExecutionStatus } from "./execution.ts";

export interface ExecutionDescription {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly name: string;
  readonly status: ExecutionStatus;
  readonly startDate: string;
  readonly stopDate?: string;
  readonly input: string;
  readonly output?: string;
  /** Measured: a TIMED_OUT execution has neither (floci-io/floci#2733). */
  readonly error?: string;
  readonly cause?: string;
  readonly redriveCount: number;
  readonly redriveStatus: "REDRIVABLE" | "NOT_REDRIVABLE" | "REDRIVABLE_BY_MAP_RUN";
}

export function describeExecution(execution: Execution): ExecutionDescription {
  const { source, status, stopMs, output, error } = execution;
  const isChild = source.progress.path !== "";
  const isRedrivable = status !== "RUNNING" && status !== "SUCCEEDED";
  return {
    executionArn: source.arn,
    stateMachineArn: source.machineArn,
    name: source.name,
    status,
    startDate: new Date(source.startMs).toISOString(),
    ...(stopMs !== undefined && { stopDate: new Date(stopMs).toISOString() }),
    input: source.input.text,
    ...(output !== undefined && { output: output.text }),
    ...(status !== "TIMED_OUT" && error?.details),
    redriveCount: source.redriveCount,
    redriveStatus: !isRedrivable ? "NOT_REDRIVABLE" : isChild ? "REDRIVABLE_BY_MAP_RUN" : "REDRIVABLE",
  };
}
