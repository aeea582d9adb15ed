// The last of the limits on a task's life: Fargate has none of its own. Also lets the sampler sleep when no run is at
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
import { emitMetrics } from "../metrics.ts";
import { NumberText } from "../schemas.ts";
import { readEnvironment, stageHandler } from "../stage-handler.ts";
import { type RunningTask, tooOld } from "./too-old.ts";

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
  const old = tooOld(await listTasks(ecs, cluster), env.T1_MAX_AGE_SECONDS, new Date());
  for (const task of old) await ecs.send(new StopTaskCommand({ cluster, task, reason: "t1: too old" }));
  const isIdle = !(await anyRunning(env.T1_MACHINES.split(",")));
  if (isIdle)
    await ecs.send(new UpdateServiceCommand({ cluster, service: env.T1_SAMPLER_SERVICE, desiredCount: 0 }));
  emitMetrics({ SweptTasks: { value: old.length, unit: "Count" } });
  return { stopped: old, isIdle };
});

async function listTasks(client: ECSClient, cluster: string): Promise<RunningTask[]> {
  const arns: string[] = [];
  for await (const { taskArns = [] } of paginateListTasks({ client }, { cluster })) arns.push(...taskArns);
  const tasks: RunningTask[] = [];
  for (let start = 0; start < arns.length; start += DESCRIBED_AT_ONCE) {
    const some = arns.slice(start, start + DESCRIBED_AT_ONCE);
    const described = await client.send(new DescribeTasksCommand({ cluster, tasks: some }));
    for (const { taskArn, group, createdAt } of described.tasks ?? [])
      if (taskArn !== undefined && createdAt !== undefined)
        tasks.push({ arn: taskArn, group: group ?? "", createdAt });
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
