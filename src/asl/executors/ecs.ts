// The executor of `ecs:runTask.sync`: a task of containers, each a program. Shapes follow recorded executions; error
// names are in error-names.ts. Step Functions itself makes `States.TaskFailed` of a container that exits with a code
// other than 0.
import { z } from "zod";
import type { TaskContext, TaskExecutor, TaskRequest } from "../executor.ts";
import type { Json, JsonObject } from "../json-value.ts";
import { StateError } from "../state-error.ts";
import { environmentOf, type Program, type ProgramEnd, runProgram } from "./program.ts";

export interface Container {
  readonly name: string;
  readonly image: string;
  /** undefined: there is no such image here, and the task never starts */
  readonly program: Program | undefined;
  readonly environment?: Readonly<Record<string, string>>;
  /** The task ends with an essential container; true by default. */
  readonly isEssential?: boolean;
  readonly stopTimeoutSeconds?: number;
}

export interface TaskDefinition {
  readonly containers: readonly Container[];
  readonly cpu?: string;
  readonly memory?: string;
}

const Arguments = z.looseObject({
  Cluster: z.string().optional(),
  TaskDefinition: z.string(),
  LaunchType: z.string().optional(),
  CapacityProviderStrategy: z.array(z.looseObject({ CapacityProvider: z.string() })).optional(),
  Overrides: z
    .looseObject({
      ContainerOverrides: z
        .array(
          z.looseObject({
            Name: z.string(),
            Command: z.array(z.string()).optional(),
            Environment: z.custom<Json>().optional(),
          }),
        )
        .optional(),
    })
    .optional(),
});
type Arguments = z.output<typeof Arguments>;

/** ECS: 8,192 characters of overrides. */
const OVERRIDE_CHARACTERS = 8_192;

/** @param definitions by family */
export function ecsExecutor(definitions: Readonly<Record<string, TaskDefinition>>): TaskExecutor {
  return async (request, context) => {
    const parsed = Arguments.safeParse(request.arguments);
    if (!parsed.success) throw new StateError("ECS.InvalidParameterException", z.prettifyError(parsed.error));
    const given = parsed.data;
    const family = /([^/:]+)(?::\d+)?$/.exec(given.TaskDefinition)?.[1] ?? given.TaskDefinition;
    const definition = Object.hasOwn(definitions, family) ? definitions[family] : undefined;
    if (definition === undefined) throw new StateError("ECS.ClientException", "TaskDefinition not found.");
    if (JSON.stringify(given.Overrides ?? {}).length > OVERRIDE_CHARACTERS)
      throw new StateError(
        "ECS.InvalidParameterException",
        `Container Overrides length must be at most ${OVERRIDE_CHARACTERS}`,
      );
    const names = definition.containers.map(({ name }) => name);
    for (const { Name: name } of given.Overrides?.ContainerOverrides ?? [])
      if (!names.includes(name))
        throw new StateError(
          "ECS.InvalidParameterException",
          `Override for container named ${name} is not a container in the TaskDefinition.`,
        );
    const task = new Task(request, context, family, definition, given);
    const response: Json = {
      Failures: [],
      SdkHttpMetadata: { HttpStatusCode: 200 },
      SdkResponseMetadata: { RequestId: request.requestId },
      Tasks: [task.describe("PROVISIONING", [])],
    };
    context.submitted(response);
    const { ends, stopCode, reason } = await task.run();
    const description = task.describe("STOPPED", ends, stopCode, reason);
    if (stopCode === "TaskFailedToStart")
      // catalogue-pipeline#3496; an execution recorded in February 2024 had States.TaskFailed with the same cause.
      throw new StateError("ECS.TaskFailedToStartException", JSON.stringify(description));
    if (stopCode !== "EssentialContainerExited" || ends.some(end => end !== undefined && end.exitCode !== 0))
      throw new StateError("States.TaskFailed", JSON.stringify(description), {
        cause: ends.find(end => end?.error !== undefined)?.error,
      });
    return description;
  };
}

class Task {
  readonly #request: TaskRequest;
  readonly #context: TaskContext;
  readonly #family: string;
  readonly #definition: TaskDefinition;
  readonly #given: Arguments;
  readonly #startMs: number;

  constructor(
    request: TaskRequest,
    context: TaskContext,
    family: string,
    definition: TaskDefinition,
    given: Arguments,
  ) {
    this.#request = request;
    this.#context = context;
    this.#family = family;
    this.#definition = definition;
    this.#given = given;
    this.#startMs = context.now();
  }

  async run(): Promise<{
    readonly ends: readonly (ProgramEnd | undefined)[];
    readonly stopCode: string;
    readonly reason: string;
  }> {
    const { containers } = this.#definition;
    const missing = containers.find(({ program }) => program === undefined);
    if (missing !== undefined)
      return {
        ends: containers.map(() => undefined),
        stopCode: "TaskFailedToStart",
        reason: `CannotPullContainerError: no image ${missing.image} on this machine`,
      };
    const stop = new AbortController();
    const onAbort = () => stop.abort();
    if (this.#context.signal.aborted) onAbort();
    this.#context.signal.addEventListener("abort", onAbort);
    const ends: (ProgramEnd | undefined)[] = containers.map(() => undefined);
    await Promise.all(
      containers.map(async (container, index) => {
        ends[index] = await this.#runContainer(container, stop.signal);
        if (container.isEssential !== false) stop.abort();
      }),
    );
    this.#context.signal.removeEventListener("abort", onAbort);
    const told = ends.find(end => end?.stopCode !== undefined || end?.reason !== undefined);
    const neverRan = ends.some(
      end => end?.exitCode === undefined && end?.reason?.startsWith("CannotStart") === true,
    );
    return {
      ends,
      stopCode:
        told?.stopCode ??
        (neverRan
          ? "TaskFailedToStart"
          : this.#context.signal.aborted
            ? "UserInitiated"
            : "EssentialContainerExited"),
      reason: told?.reason ?? "Essential container in task exited",
    };
  }

  /** The task as the request's response or its last state shows it. */
  describe(
    status: "PROVISIONING" | "STOPPED",
    ends: readonly (ProgramEnd | undefined)[],
    stopCode?: string,
    reason?: string,
  ): JsonObject {
    const { containers, cpu = "256", memory = "512" } = this.#definition;
    const arn = `arn:aws:ecs:us-east-1:000000000000`;
    const taskArn = `${arn}:task/${this.#request.requestId}`;
    const { LaunchType: launchType = "FARGATE", CapacityProviderStrategy: strategy } = this.#given;
    const overrides = new Map((this.#given.Overrides?.ContainerOverrides ?? []).map(one => [one.Name, one]));
    return {
      Attachments: [],
      Attributes: [],
      ClusterArn: this.#given.Cluster ?? `${arn}:cluster/default`,
      Containers: containers.map(({ name, image }, index) => ({
        ContainerArn: `${arn}:container/${this.#request.requestId}/${index}`,
        Cpu: "0",
        ExitCode: ends[index]?.exitCode,
        Reason: ends[index]?.reason,
        GpuIds: [],
        Image: image,
        LastStatus: status === "STOPPED" ? "STOPPED" : "PENDING",
        ManagedAgents: [],
        Name: name,
        NetworkBindings: [],
        NetworkInterfaces: [],
        TaskArn: taskArn,
      })),
      Cpu: cpu,
      CreatedAt: this.#startMs,
      DesiredStatus: status === "STOPPED" ? "STOPPED" : "RUNNING",
      EnableExecuteCommand: false,
      EphemeralStorage: { SizeInGiB: 20 },
      Group: `family:${this.#family}`,
      InferenceAccelerators: [],
      LastStatus: status,
      ...(strategy === undefined
        ? { LaunchType: launchType }
        : { CapacityProviderName: strategy[0]?.CapacityProvider ?? "" }),
      Memory: memory,
      Overrides: {
        ContainerOverrides: containers.map(({ name }) => ({
          Command: overrides.get(name)?.Command ?? [],
          Environment: overrides.get(name)?.Environment ?? [],
          EnvironmentFiles: [],
          Name: name,
          ResourceRequirements: [],
        })),
        InferenceAcceleratorOverrides: [],
      },
      PlatformVersion: "1.4.0",
      StartedBy: "AWS Step Functions",
      StopCode: stopCode,
      ...(reason !== undefined && { StoppedReason: reason, StoppedAt: this.#context.now() }),
      Tags: [],
      TaskArn: taskArn,
      TaskDefinitionArn: `${arn}:task-definition/${this.#family}:1`,
      Version: status === "STOPPED" ? 5 : 1,
    };
  }

  #runContainer(container: Container, signal: AbortSignal): Promise<ProgramEnd> {
    const override = this.#given.Overrides?.ContainerOverrides?.find(
      ({ Name: name }) => name === container.name,
    );
    return runProgram(
      container.program as Program,
      {
        environment: { ...container.environment, ...environmentOf(override?.Environment) },
        command: override?.Command,
        signal,
        sleep: ms => this.#context.sleep(ms),
      },
      container,
    );
  }
}
