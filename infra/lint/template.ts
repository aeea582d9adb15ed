// What CloudFormation takes without a word and AWS then runs wrongly, or never. Rules over templates, as they are
// deployed; each has a planted violation in its test.
import type { Problem } from "./definition.ts";

interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: CloudFormation's properties have no schema here; every rule looks at few.
  readonly Properties?: any;
}
export interface TemplateJson {
  // biome-ignore lint/suspicious/noExplicitAny: values of outputs have no schema here
  readonly Outputs?: Readonly<Record<string, { readonly Value: any }>>;
  readonly Resources: Readonly<Record<string, Resource>>;
}

/** @param sandboxFamily how families of sandboxes begin */
export function lintTemplate(template: TemplateJson, sandboxFamily: string): Problem[] {
  const all = Object.entries(template.Resources);
  const of = (type: string) => all.filter(([, resource]) => resource.Type === type);
  const problems: Problem[] = [];
  const check = (isRight: boolean, rule: string, where: string, message: string): void => {
    if (!isRight) problems.push({ rule, where, message });
  };
  for (const [id, { Properties: task }] of of("AWS::ECS::TaskDefinition")) {
    if (!String(task.Family).startsWith(sandboxFamily)) continue;
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
  const spot = new Set(
    of("AWS::Batch::ComputeEnvironment")
      .filter(([, { Properties }]) => Properties.ComputeResources?.Type?.includes("SPOT"))
      .map(([id]) => id),
  );
  for (const [id, { Properties: environment }] of of("AWS::Batch::ComputeEnvironment")) {
    check(
      environment.ComputeEnvironmentName === undefined,
      "compute-environment",
      id,
      "a fixed name stands in the way of its own replacement",
    );
    const launch = environment.ComputeResources?.LaunchTemplate;
    check(
      launch === undefined || launch.Version !== undefined,
      "compute-environment",
      id,
      "without a version an edited launch template changes nothing",
    );
  }
  for (const [id, { Properties: queue }] of of("AWS::Batch::JobQueue")) {
    const limits = queue.JobStateTimeLimitActions ?? [];
    check(
      limits.some(
        ({ State, Action, Reason }: Record<string, string>) =>
          State === "RUNNABLE" && Action === "CANCEL" && Reason === "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
      ),
      "queue-limit",
      id,
      "a job without a machine waits for ever",
    );
  }
  for (const [id, { Properties: job }] of of("AWS::Batch::JobDefinition")) {
    check((job.RetryStrategy?.Attempts ?? 1) <= 10, "job-attempts", id, "Batch tries ten times at most");
    if (job.Type !== "multinode") continue;
    const ranges = job.NodeProperties.NodeRangeProperties;
    check(
      ranges.at(-1).TargetNodes.endsWith(":"),
      "node-ranges",
      id,
      "the last range is closed: another number of nodes would be refused",
    );
    check(spot.size === 0, "multinode-spot", id, "a multi-node job on Spot stays RUNNABLE");
    const [main] = ranges;
    for (const { TargetNodes, Container } of ranges) {
      const where = `${id} ${TargetNodes}`;
      const linux = Container.LinuxParameters;
      const first = main.Container.LinuxParameters;
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

export function hasGpu(container: {
  readonly ResourceRequirements?: readonly { readonly Type: string; readonly Value: string }[];
}): boolean {
  return (container.ResourceRequirements ?? []).some(
    ({ Type, Value }) => Type === "GPU" && Number(Value) > 0,
  );
}
