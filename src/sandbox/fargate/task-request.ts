// The request by which a sandbox's task is started, and what of it can be read back from the task.
import { createHash } from "node:crypto";
import type { RunTaskCommandInput, Tag, Task } from "@aws-sdk/client-ecs";
import { makeToken } from "../../sandboxd/handshake.ts";
import type { Lease, SandboxSpec } from "../sandbox.ts";
import { RESERVED_MIB, taskSize } from "./task-size.ts";

/** The containers of a sandbox's task, with the port at which the daemon of each listens; they share one address. */
export const PORTS = { agent: 8022, verifier: 8023 } as const;
export type ContainerName = keyof typeof PORTS;

/** A driver gives each daemon its own token, so whoever breaks into one does not know another's. */
const TOKEN_VARIABLE = "T1_SANDBOX_TOKEN";
export type Tokens = Readonly<Record<ContainerName, string>>;

export const TAG = {
  lease: "t1:lease",
  generation: "t1:generation",
  /** When anybody may end the task, as ISO 8601. */
  deadline: "t1:deadline",
  /** ARN of the driver's own task. */
  driver: "t1:driver",
} as const;

/** A sandbox that grades the first one's files may have a slightly later deadline and still use the same task. */
export const SUCCESSOR_SLACK_MS = 600_000;

export type Market = "FARGATE_SPOT" | "FARGATE";

/** Where tasks run and how they are known. */
export interface TaskPlace {
  readonly cluster: string;
  readonly subnets: readonly string[];
  readonly securityGroups: readonly string[];
  /** What a sandbox has beside these when its spec's network is public; without any, such specs are refused. */
  readonly networkedGroups?: readonly string[];
  /** Added to each task, for budgets. */
  readonly tags: Readonly<Record<string, string>>;
  /** ARN of the task that this driver is, where it is one. */
  readonly driver: string | undefined;
}

export interface TaskPlan {
  readonly taskDefinition: string;
  readonly spec: SandboxSpec;
  readonly lease: Lease;
  readonly market: Market;
  /** How many tasks of this lease ended before they started. */
  readonly launch: number;
}

/** The same for every driver that asks for this lease; a stopped task's name is not used again (ECS would return it). */
function nameOfLaunch({ id, generation }: Pick<Lease, "id" | "generation">, launch: number): string {
  return `${startedBy({ id, generation })}${launch === 0 ? "" : `-${launch}`}`;
}

/** A lease's tasks are listed by this name. */
export function startedBy({ id, generation }: Pick<Lease, "id" | "generation">): string {
  return `t1-${createHash("sha256").update(id).digest("hex").slice(0, 32)}-${generation}`;
}

/** Made once per launch: repeated with other tokens it would be another request under the same client token. */
export function taskRequest(place: TaskPlace, plan: TaskPlan): RunTaskCommandInput {
  const { taskDefinition, spec, lease, market, launch } = plan;
  const size = taskSize(spec);
  const memory = size.memory === undefined ? {} : { memory: Number(size.memory) - RESERVED_MIB };
  const withToken = (name: ContainerName) => ({
    name,
    environment: [{ name: TOKEN_VARIABLE, value: makeToken() }],
    ...(name === "agent" ? memory : {}),
  });
  return {
    cluster: place.cluster,
    taskDefinition,
    count: 1,
    clientToken: nameOfLaunch(lease, launch),
    startedBy: startedBy(lease),
    capacityProviderStrategy: [{ capacityProvider: market, weight: 1 }],
    platformVersion: "1.4.0",
    networkConfiguration: {
      awsvpcConfiguration: {
        subnets: [...place.subnets],
        securityGroups: [
          ...place.securityGroups,
          ...(spec.network === "public" ? (place.networkedGroups ?? []) : []),
        ],
        assignPublicIp: "DISABLED",
      },
    },
    overrides: { ...size, containerOverrides: [withToken("agent"), withToken("verifier")] },
    enableECSManagedTags: true,
    propagateTags: "TASK_DEFINITION",
    tags: tagsOf(place, lease),
  };
}

function tagsOf({ tags, driver }: TaskPlace, { id, generation, deadlineMs }: Lease): Tag[] {
  const all = {
    ...tags,
    [TAG.lease]: id,
    [TAG.generation]: `${generation}`,
    [TAG.deadline]: new Date(deadlineMs + SUCCESSOR_SLACK_MS).toISOString(),
    ...(driver === undefined ? {} : { [TAG.driver]: driver }),
  };
  // Values of tags are short and have few signs.
  return Object.entries(all).map(([key, value]) => ({
    key,
    value: value.replace(/[^\p{L}\p{N} _.:/=+@-]/gu, "_").slice(0, 256),
  }));
}

/** @returns undefined for a task that is none of ours */
export function tokensOf(task: Pick<Task, "overrides">): Tokens | undefined {
  const tokenOf = (container: ContainerName): string | undefined =>
    task.overrides?.containerOverrides
      ?.find(({ name }) => name === container)
      ?.environment?.find(({ name }) => name === TOKEN_VARIABLE)?.value;
  const [agent, verifier] = [tokenOf("agent"), tokenOf("verifier")];
  return agent === undefined || verifier === undefined ? undefined : { agent, verifier };
}

/** @returns undefined while it has none */
export function addressOf({ attachments = [] }: Pick<Task, "attachments">): string | undefined {
  return attachments
    .filter(({ type }) => type === "ElasticNetworkInterface")
    .flatMap(({ details = [] }) => details)
    .find(({ name }) => name === "privateIPv4Address")?.value;
}
