// Why a run's execution failed: from the run down to the state that began it, with the log of what ran there.
import { type ExecutionListItem, ListExecutionsCommand, ListMapRunsCommand } from "@aws-sdk/client-sfn";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";
import type { Deployment } from "./deployment.ts";
import { describeExecution, listParts, type RunExecution, readLastEvents } from "./executions.ts";
import { type LogTail, tailJob, tailTask } from "./task-logs.ts";

export interface Explanation {
  /** ARN of the execution that failed by itself. */
  readonly arn: string;
  readonly state?: string;
  readonly error: string;
  /** In words where the cause holds them. */
  readonly cause: string;
  /** Failed shards of episodes, at most three. */
  readonly shards: readonly { readonly arn: string; readonly error: string; readonly cause: string }[];
  readonly log?: LogTail;
}

/** @param execution of the run, one that has failed, timed out or was aborted */
export async function explainFailure(
  deployment: Deployment,
  execution: RunExecution,
  clients: AwsClients,
): Promise<Explanation> {
  const arn = (await failedPart(deployment, execution, clients)) ?? execution.arn;
  const { error = "States.Timeout", cause = "", status } = await describeExecution(arn, clients);
  const shards = await failedShards(arn, clients);
  const raw = shards[0]?.cause ?? (await lastTaskFailure(arn, clients)) ?? cause;
  const log = (await tailTask(raw, clients)) ?? (await tailJob(raw, clients));
  const state = await failedState(arn, clients);
  return {
    arn,
    ...(state !== undefined && { state }),
    error: status === "ABORTED" ? "aborted" : error,
    cause: causeInWords(cause),
    shards: shards.map(shard => ({ ...shard, cause: causeInWords(shard.cause) })),
    ...(log !== undefined && { log }),
  };
}

/** An evaluation fails inside an iteration: the one that was started last began it. */
async function failedPart(
  { machines }: Deployment,
  execution: RunExecution,
  clients: AwsClients,
): Promise<string | undefined> {
  const failed: ExecutionListItem[] = [];
  for (const machine of [machines.iteration, machines.evaluation])
    for (const status of ["FAILED", "TIMED_OUT"] as const)
      failed.push(...(await listParts(machine, execution, status, clients)));
  const within = failed.filter(({ startDate }) => (startDate ?? new Date(0)) >= execution.startedAt);
  within.sort((a, b) => (b.startDate?.getTime() ?? 0) - (a.startDate?.getTime() ?? 0));
  return within[0]?.executionArn;
}

async function failedShards(arn: string, clients: AwsClients) {
  const { states } = clients;
  const { mapRuns = [] } = await asked(
    "states:ListMapRuns",
    states.send(new ListMapRunsCommand({ executionArn: arn })),
  );
  const shards: { arn: string; error: string; cause: string }[] = [];
  for (const { mapRunArn } of mapRuns) {
    const command = new ListExecutionsCommand({ mapRunArn, statusFilter: "FAILED", maxResults: 3 });
    const { executions = [] } = await asked("states:ListExecutions", states.send(command));
    for (const { executionArn = "" } of executions) {
      const { error = "", cause = "" } = await describeExecution(executionArn, clients);
      // A Fail state's words hide the task's; the history has both.
      const task = await lastTaskFailure(executionArn, clients);
      shards.push({ arn: executionArn, error, cause: task ?? cause });
    }
  }
  return shards.slice(0, 3);
}

async function lastTaskFailure(arn: string, clients: AwsClients): Promise<string | undefined> {
  const events = await readLastEvents(arn, 20, clients);
  return events.find(({ taskFailedEventDetails }) => taskFailedEventDetails?.cause !== undefined)
    ?.taskFailedEventDetails?.cause;
}

async function failedState(arn: string, clients: AwsClients): Promise<string | undefined> {
  const events = await readLastEvents(arn, 100, clients);
  return events.find(({ stateEnteredEventDetails }) => stateEnteredEventDetails !== undefined)
    ?.stateEnteredEventDetails?.name;
}

/** A function's cause is JSON with the error's message; a task's or a job's, with what it ended with. */
function causeInWords(cause: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(cause);
  } catch {
    return cause.slice(0, 2_000);
  }
  if (typeof parsed !== "object" || parsed === null) return cause;
  const fields = parsed as {
    errorMessage?: unknown;
    StoppedReason?: unknown;
    StatusReason?: unknown;
    Cause?: unknown;
    Containers?: readonly { ExitCode?: unknown; Reason?: unknown }[];
    Container?: { ExitCode?: unknown; Reason?: unknown };
  };
  if (typeof fields.errorMessage === "string") return fields.errorMessage;
  const ended = fields.Containers?.[0] ?? fields.Container;
  const words = [fields.StoppedReason, fields.StatusReason, ended?.Reason].filter(Boolean).map(String);
  if (ended?.ExitCode !== undefined) words.push(`exit code ${ended.ExitCode}`);
  if (words.length > 0) return words.join("; ");
  return typeof fields.Cause === "string" ? causeInWords(fields.Cause) : cause.slice(0, 2_000);
}
