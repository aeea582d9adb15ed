// Finds faults in a template that CloudFormation accepts without a warning and AWS then runs wrongly, or never. The rules
// read the deployed templates; each has a planted violation in its test.
import { z } from "zod";
import type { Problem } from "./definition.ts";

export interface TemplateJson {
  readonly Resources: Readonly<Record<string, { readonly Type: string; readonly Properties?: unknown }>>;
}

/** The rules only ask if this property is set. */
const Setting = z.unknown().optional();

// The schema of each kind of resource has only the properties that a rule reads; others pass unchecked.
const TaskDefinition = z.looseObject({
  Family: z.string(),
  TaskRoleArn: Setting,
  PidMode: Setting,
  ContainerDefinitions: z.array(z.looseObject({ LogConfiguration: Setting, Secrets: Setting })),
});
const ComputeEnvironment = z.looseObject({
  ComputeEnvironmentName: Setting,
  ComputeResources: z
    .looseObject({
      Type: z.string().optional(),
      LaunchTemplate: z.looseObject({ Version: Setting }).optional(),
    })
    .optional(),
});
const JobQueue = z.looseObject({
  JobStateTimeLimitActions: z
    .array(z.looseObject({ State: z.string(), Action: z.string(), Reason: z.string() }))
    .default([]),
});
const Container = z.looseObject({
  ResourceRequirements: z.array(z.looseObject({ Type: z.string(), Value: z.string() })).optional(),
  LinuxParameters: z.looseObject({ Devices: Setting, SharedMemorySize: z.number().optional() }).optional(),
});
const JobDefinition = z.looseObject({
  Type: z.string().optional(),
  RetryStrategy: z.looseObject({ Attempts: z.number().optional() }).optional(),
  NodeProperties: z
    .looseObject({
      NodeRangeProperties: z.array(z.looseObject({ TargetNodes: z.string(), Container })),
    })
    .optional(),
});

/**
 * @param sandboxFamily prefix of the families of sandboxes
 * @throws ZodError for properties that are not of their kind
 */
export function lintTemplate(template: TemplateJson, sandboxFamily: string): Problem[] {
  const of = <Properties>(type: string, schema: z.ZodType<Properties>): [string, Properties][] =>
    Object.entries(template.Resources)
      .filter(([, resource]) => resource.Type === type)
      .map(([id, resource]) => [id, schema.parse(resource.Properties ?? {})]);
  const problems: Problem[] = [];
  const check = (isRight: boolean, rule: string, where: string, message: string): void => {
    if (!isRight) problems.push({ rule, where, message });
  };
  for (const [id, task] of of("AWS::ECS::TaskDefinition", TaskDefinition)) {
    if (!task.Family.startsWith(sandboxFamily)) continue;
    check(task.TaskRoleArn === undefined, "sandbox-identity", id, "a sandbox must have no task role");
    for (const container of task.ContainerDefinitions) {
      check(
        container.LogConfiguration === undefined,
        "sandbox-identity",
        id,
        "a sandbox must not write logs",
      );
      check(container.Secrets === undefined, "sandbox-identity", id, "a sandbox must be given no secret");
    }
    check(task.PidMode === undefined, "sandbox-identity", id, "agent and verifier must not share processes");
  }
  const environments = of("AWS::Batch::ComputeEnvironment", ComputeEnvironment);
  const hasSpot = environments.some(([, { ComputeResources }]) => ComputeResources?.Type?.includes("SPOT"));
  for (const [id, { ComputeEnvironmentName, ComputeResources }] of environments) {
    check(
      ComputeEnvironmentName === undefined,
      "compute-environment",
      id,
      "a fixed name stands in the way of its own replacement",
    );
    const launch = ComputeResources?.LaunchTemplate;
    check(
      launch === undefined || launch.Version !== undefined,
      "compute-environment",
      id,
      "without a version an edited launch template changes nothing",
    );
  }
  for (const [id, queue] of of("AWS::Batch::JobQueue", JobQueue)) {
    check(
      queue.JobStateTimeLimitActions.some(
        ({ State, Action, Reason }) =>
          State === "RUNNABLE" && Action === "CANCEL" && Reason === "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
      ),
      "queue-limit",
      id,
      "a job without a machine waits for ever",
    );
  }
  for (const [id, job] of of("AWS::Batch::JobDefinition", JobDefinition)) {
    check((job.RetryStrategy?.Attempts ?? 1) <= 10, "job-attempts", id, "Batch tries ten times at most");
    if (job.Type !== "multinode") continue;
    const ranges = job.NodeProperties?.NodeRangeProperties ?? [];
    check(
      ranges.at(-1)?.TargetNodes.endsWith(":") ?? false,
      "node-ranges",
      id,
      "the last range is closed: another number of nodes would be refused",
    );
    check(!hasSpot, "multinode-spot", id, "a multi-node job on Spot stays RUNNABLE");
    const first = ranges[0]?.Container.LinuxParameters;
    for (const { TargetNodes, Container } of ranges) {
      const where = `${id} ${TargetNodes}`;
      const linux = Container.LinuxParameters;
      check(
        JSON.stringify(linux?.Devices) === JSON.stringify(first?.Devices) &&
          linux?.SharedMemorySize === first?.SharedMemorySize,
        "node-devices",
        where,
        "devices and shared memory differ from the main node's",
      );
      check(hasGpu(Container), "node-gpus", where, "no GPU is asked for");
    }
  }
  return problems;
}

export function hasGpu(container: z.infer<typeof Container>): boolean {
  return (container.ResourceRequirements ?? []).some(
    ({ Type, Value }) => Type === "GPU" && Number(Value) > 0,
  );
}
