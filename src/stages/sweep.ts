// The last limit on the life of tasks, since Fargate has none of its own: ends tasks that are too old, and sandboxes whose
// deadline has passed or whose driver is gone. Also puts the sampler to sleep while no run is at work.
import { z } from "zod";
import { orphanedSandboxes } from "../sandbox/fargate/orphaned-sandboxes.ts";
import { environment, ListText, NumberText, Text } from "../settings/environment.ts";
import { type StageServices, stage } from "./stage.ts";

export interface RunningTask {
  readonly arn: string;
  /** As ECS reports it: `family:t1-driver` for a task of its own, `service:t1-sampler` for one of a service. */
  readonly group: string;
  readonly createdAt: Date;
}

export interface SweptCluster {
  /** All tasks that run or start, with their tags. */
  readonly tasks: () => Promise<readonly (RunningTask & Parameters<typeof orphanedSandboxes>[0][number])[]>;
  readonly stopTask: (arn: string, reason: string) => Promise<void>;
  readonly isAnyRunning: (machines: readonly string[]) => Promise<boolean>;
  readonly stopSampler: () => Promise<void>;
}

export const sweep = stage({
  /** Nothing that the schedule sends matters. */
  input: z.unknown(),
  output: z.strictObject({ stopped: z.array(z.string()), isIdle: z.boolean() }),
  settings: environment("the sweep stage", {
    cluster: ["T1_CLUSTER", Text],
    maxAgeSeconds: ["T1_MAX_AGE_SECONDS", NumberText],
    samplerService: ["T1_SAMPLER_SERVICE", Text],
    /** ARNs of the state machines whose executions need the sampler. */
    machines: ["T1_MACHINES", ListText],
  }),
  run: async (
    _,
    { maxAgeSeconds, machines },
    { cluster, onMetrics }: StageServices & { readonly cluster: SweptCluster },
  ) => {
    const tasks = await cluster.tasks();
    const now = new Date();
    const ended = new Map([
      ...tooOld(tasks, maxAgeSeconds, now).map(arn => [arn, "too old"] as const),
      ...orphanedSandboxes(tasks, now).map(({ arn, why }) => [arn, why] as const),
    ]);
    for (const [arn, why] of ended) await cluster.stopTask(arn, `t1: ${why}`);
    const isIdle = !(await cluster.isAnyRunning(machines));
    if (isIdle) await cluster.stopSampler();
    onMetrics({ SweptTasks: { value: ended.size, unit: "Count" } });
    return { stopped: [...ended.keys()], isIdle };
  },
});

/** Tasks of services live as long as their service; every other one has a longest life. @returns ARNs */
export function tooOld(tasks: readonly RunningTask[], maxAgeSeconds: number, now: Date): string[] {
  return tasks
    .filter(({ group }) => !group.startsWith("service:"))
    .filter(({ createdAt }) => (now.getTime() - createdAt.getTime()) / 1000 > maxAgeSeconds)
    .map(({ arn }) => arn);
}
