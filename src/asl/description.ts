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
  /** A TIMED_OUT execution has neither error nor cause (measured: floci-io/floci#2733). */
  readonly error?: string;
  readonly cause?: string;
}

export function describeExecution({
  source,
  status,
  stopMs,
  output,
  error,
}: Execution): ExecutionDescription {
  return {
    executionArn: source.arn,
    stateMachineArn: source.machineArn,
    name: source.name,
    status,
    startDate: new Date(source.startMs).toISOString(),
    stopDate: stopMs === undefined ? undefined : new Date(stopMs).toISOString(),
    input: source.input.text,
    output: output?.text,
    ...(status !== "TIMED_OUT" && error?.details),
  };
}
