// The last of the limits on a task's life: Fargate has none of its own. Ends what is too old, and sandboxes before that
// when their deadline has passed or their driver is gone. Also lets the sampler sleep when no run is at
// work.
import {
  DescribeTasksCommand,
  ECSClient,
  paginateListTasks,
  StopTaskCommand,
  UpdateServiceCommand,
} from "@aws-sdk/client-ecs";
import { ListExecutionsCommand, SFNClient } from "@aws-sdk/client-sfn";
import { z } from "zod";
import { leftSandboxes } from "../../src/sandbox/fargate/left-sandboxes.ts";
import { emitMetrics } from "../metrics.ts";
import { NumberText } from "../schemas.ts";
import { readEnvironment, stageHandler } from "../stage-handler.ts";
import { type RunningTask, tooOld } from "./too-old.ts";

type SweptTask = RunningTask & Parameters<typeof leftSandboxes>[0][number];

/** DescribeTasks takes so many. */
const DESCRIBED_AT_ONCE = 100;

/** What the schedule sends is of no interest. */
export const handler = stageHandler(z.unknown(), async () => {
  const env = readEnvironment({
    T1_CLUSTER: z.string(),
    T1_MAX_AGE_SECONDS: NumberText,
    T1_SAMPLER_SERVICE: z.string(),
    T1_MACHINES: z.string(),
  });
  const ecs = new ECSClient();
  const cluster = env.T1_CLUSTER;
  const [tasks, now] = [await listTasks(ecs, cluster), new Date()];
  const ended = new Map([
    ...tooOld(tasks, env.T1_MAX_AGE_SECONDS, now).map(arn => [arn, "too old"] as const),
    ...leftSandboxes(tasks, now).map(({ arn, why }) => [arn, why] as const),
  ]);
  for (const [task, why] of ended)
    await ecs.send(new StopTaskCommand({ cluster, task, reason: `t1: ${why}` }));
  const isIdle = !(await anyRunning(env.T1_MACHINES.split(",")));
  if (isIdle)
    await ecs.send(new UpdateServiceCommand({ cluster, service: env.T1_SAMPLER_SERVICE, desiredCount: 0 }));
  emitMetrics({ SweptTasks: { value: ended.size, unit: "Count" } });
  return { stopped: [...ended.keys()], isIdle };
});

async function listTasks(client: ECSClient, cluster: string): Promise<SweptTask[]> {
  const arns: string[] = [];
  for await (const { taskArns = [] } of paginateListTasks({ client }, { cluster })) arns.push(...taskArns);
  const tasks: SweptTask[] = [];
  for (let start = 0; start < arns.length; start += DESCRIBED_AT_ONCE) {
    const some = arns.slice(start, start + DESCRIBED_AT_ONCE);
    const described = await client.send(
      new DescribeTasksCommand({ cluster, tasks: some, include: ["TAGS"] }),
    );
    for (const { taskArn, group, createdAt, tags = [] } of described.tasks ?? [])
      if (taskArn !== undefined && createdAt !== undefined)
        tasks.push({ arn: taskArn, taskArn, group: group ?? "", createdAt, tags });
  }
  return tasks;
}

async function anyRunning(machines: readonly string[]): Promise<boolean> {
  const sfn = new SFNClient();
  for (const stateMachineArn of machines) {
    const { executions = [] } = await sfn.send(
      new ListExecutionsCommand({ stateMachineArn, statusFilter: "RUNNING", maxResults: 1 }),
    );
    if (executions.length > 0) return true;
  }
  return false;
}
