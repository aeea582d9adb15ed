// How far a run is: what its newest execution, and the iteration or evaluation at work in it, are doing now.
import { DescribeJobsCommand } from "@aws-sdk/client-batch";
import { DescribeMapRunCommand, type HistoryEvent, ListMapRunsCommand } from "@aws-sdk/client-sfn";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";
import type { Deployment } from "./deployment.ts";
import { listParts, type RunExecution, readHistory, readLastEvents } from "./executions.ts";
import { describeStates, type OpenState, openStates } from "./open-states.ts";

interface ShardCounts {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly running: number;
}

export interface PartProgress {
  readonly kind: "iteration" | "evaluation";
  readonly arn: string;
  readonly name: string;
  /** In words, e.g. "playing episodes". */
  readonly doing: readonly string[];
  /** Shards of episodes, while they are played: a driver each. */
  readonly shards?: ShardCounts;
  /** Why a training job is not at work yet. */
  readonly job?: { readonly status: string; readonly reason?: string };
}

export interface RunProgress {
  readonly doing: readonly string[];
  readonly parts: readonly PartProgress[];
}

/** @param execution of the run, one that is running */
export async function readProgress(
  deployment: Deployment,
  execution: RunExecution,
  clients: AwsClients,
): Promise<RunProgress> {
  const own = openStates(await readHistory(execution.arn, clients));
  const parts: PartProgress[] = [];
  for (const kind of ["iteration", "evaluation"] as const)
    for (const part of await listParts(deployment.machines[kind], execution, "RUNNING", clients))
      parts.push(await readPart(kind, part.executionArn ?? "", part.name ?? "", clients));
  return { doing: describeStates(own), parts };
}

async function readPart(
  kind: PartProgress["kind"],
  arn: string,
  name: string,
  clients: AwsClients,
): Promise<PartProgress> {
  const open = openStates(await readHistory(arn, clients));
  const isAt = (state: string): boolean => open.some(({ name: at }) => at.startsWith(state));
  const shards = isAt("Rollouts") ? await countShards(arn, clients) : undefined;
  const job = isAt("TrainOn") ? await findJob(arn, open, clients) : undefined;
  return {
    ...{ kind, arn, name, doing: describeStates(open) },
    ...(shards !== undefined && { shards }),
    ...(job !== undefined && { job }),
  };
}

async function countShards(arn: string, { states }: AwsClients): Promise<ShardCounts | undefined> {
  const { mapRuns = [] } = await asked(
    "states:ListMapRuns",
    states.send(new ListMapRunsCommand({ executionArn: arn })),
  );
  const running = mapRuns.find(({ stopDate }) => stopDate === undefined);
  if (running === undefined) return undefined;
  const { itemCounts } = await asked(
    "states:DescribeMapRun",
    states.send(new DescribeMapRunCommand({ mapRunArn: running.mapRunArn })),
  );
  if (itemCounts === undefined) return undefined;
  const { total = 0, succeeded = 0, failed = 0, timedOut = 0, running: atWork = 0 } = itemCounts;
  return { total, succeeded, failed: failed + timedOut, running: atWork };
}

/** A job that waits for a machine looks like one at work; Batch knows the difference. */
async function findJob(
  arn: string,
  open: readonly OpenState[],
  clients: AwsClients,
): Promise<PartProgress["job"]> {
  const since = open.find(({ name }) => name.startsWith("TrainOn"))?.enteredAt ?? new Date(0);
  const events = await readLastEvents(arn, 20, clients);
  const jobId = events
    .filter(({ timestamp }) => (timestamp ?? since) >= since)
    .map(submittedJob)
    .find(Boolean);
  if (jobId === undefined) return undefined;
  const { jobs = [] } = await asked(
    "batch:DescribeJobs",
    clients.jobs.send(new DescribeJobsCommand({ jobs: [jobId] })),
  );
  const [job] = jobs;
  if (job?.status === undefined || job.status === "RUNNING") return undefined;
  return { status: job.status, ...(job.statusReason !== undefined && { reason: job.statusReason }) };
}

function submittedJob({ taskSubmittedEventDetails: details }: HistoryEvent): string | undefined {
  if (details?.resourceType !== "batch" || details.output === undefined) return undefined;
  return /"JobId":\s*"([^"]+)"/.exec(details.output)?.[1];
}
