// The last lines that a task or a training job wrote.
import { DescribeJobsCommand } from "@aws-sdk/client-batch";
import { GetLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import { DescribeTaskDefinitionCommand } from "@aws-sdk/client-ecs";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";

export interface LogTail {
  readonly group: string;
  readonly stream: string;
  readonly lines: readonly string[];
}

const LINES = 20;

/** @param cause of a failed `ecs:runTask.sync` @returns undefined where the task never wrote a log */
export async function tailTask(cause: string, clients: AwsClients): Promise<LogTail | undefined> {
  const definition = field(cause, "TaskDefinitionArn");
  const task = field(cause, "TaskArn")?.split("/").at(-1);
  if (definition === undefined || task === undefined) return undefined;
  const { taskDefinition } = await asked(
    "ecs:DescribeTaskDefinition",
    clients.tasks.send(new DescribeTaskDefinitionCommand({ taskDefinition: definition })),
  );
  const [container] = taskDefinition?.containerDefinitions ?? [];
  const options = container?.logConfiguration?.options;
  const group = options?.["awslogs-group"];
  if (container?.name === undefined || group === undefined) return undefined;
  return tail(group, `${options?.["awslogs-stream-prefix"]}/${container.name}/${task}`, clients);
}

/** @param cause of a failed `batch:submitJob.sync` */
export async function tailJob(cause: string, clients: AwsClients): Promise<LogTail | undefined> {
  const jobId = field(cause, "JobId");
  if (jobId === undefined) return undefined;
  const { jobs = [] } = await asked(
    "batch:DescribeJobs",
    clients.jobs.send(new DescribeJobsCommand({ jobs: [jobId] })),
  );
  const container = jobs[0]?.container;
  const group = container?.logConfiguration?.options?.["awslogs-group"] ?? "/aws/batch/job";
  return container?.logStreamName === undefined ? undefined : tail(group, container.logStreamName, clients);
}

async function tail(group: string, stream: string, { logs }: AwsClients): Promise<LogTail | undefined> {
  const command = new GetLogEventsCommand({
    ...{ logGroupName: group, logStreamName: stream },
    ...{ limit: LINES, startFromHead: false },
  });
  try {
    const { events = [] } = await asked("logs:GetLogEvents", logs.send(command));
    return { group, stream, lines: events.map(({ message = "" }) => message.trimEnd()) };
  } catch (error) {
    // A task that never started has no stream.
    if (error instanceof Error && error.name === "ResourceNotFoundException") return undefined;
    throw error;
  }
}

/** Causes hold JSON, but one that was cut off is none any more. */
function field(cause: string, name: string): string | undefined {
  return new RegExp(`"${name}":\\s*"([^"]+)"`).exec(cause)?.[1];
}
