// The tasks of a deployment's cluster, and its sampler.
import {
  DescribeTasksCommand,
  ECSClient,
  paginateListTasks,
  StopTaskCommand,
  UpdateServiceCommand,
} from "@aws-sdk/client-ecs";
import { ListExecutionsCommand, SFNClient } from "@aws-sdk/client-sfn";
import type { SweptCluster, sweep } from "../../src/stages/sweep.ts";

/** The most that DescribeTasks takes. */
const DESCRIBED_AT_ONCE = 100;

export function sweptCluster({
  cluster,
  samplerService: service,
}: ReturnType<typeof sweep.settings.fromEnvironment>): SweptCluster {
  const ecs = new ECSClient();
  return {
    tasks: () => listTasks(ecs, cluster),
    stopTask: async (task, reason) => {
      await ecs.send(new StopTaskCommand({ cluster, task, reason }));
    },
    isAnyRunning,
    stopSampler: async () => {
      await ecs.send(new UpdateServiceCommand({ cluster, service, desiredCount: 0 }));
    },
  };
}

async function listTasks(client: ECSClient, cluster: string): ReturnType<SweptCluster["tasks"]> {
  const arns: string[] = [];
  for await (const { taskArns = [] } of paginateListTasks({ client }, { cluster })) arns.push(...taskArns);
  const found = [];
  for (let start = 0; start < arns.length; start += DESCRIBED_AT_ONCE) {
    const tasks = arns.slice(start, start + DESCRIBED_AT_ONCE);
    const described = await client.send(new DescribeTasksCommand({ cluster, tasks, include: ["TAGS"] }));
    for (const { taskArn, group, createdAt, tags = [] } of described.tasks ?? [])
      if (taskArn !== undefined && createdAt !== undefined)
        found.push({ arn: taskArn, taskArn, group: group ?? "", createdAt, tags });
  }
  return found;
}

async function isAnyRunning(machines: readonly string[]): Promise<boolean> {
  const sfn = new SFNClient();
  for (const stateMachineArn of machines) {
    const { executions = [] } = await sfn.send(
      new ListExecutionsCommand({ stateMachineArn, statusFilter: "RUNNING", maxResults: 1 }),
    );
    if (executions.length > 0) return true;
  }
  return false;
}
