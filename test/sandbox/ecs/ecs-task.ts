// A task of the fake of ECS: its containers really run (local-task.ts), and it goes through the states that ECS tells of.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunTaskCommandInput, Tag } from "@aws-sdk/client-ecs";
import type { StartFault } from "./faults.ts";
import { type ContainerDefinition, type LocalContainer, startContainer } from "./local-task.ts";
import { TaskNetwork } from "./task-network.ts";

export interface TaskDefinition {
  readonly family: string;
  readonly containerDefinitions: readonly (Partial<ContainerDefinition> & {
    readonly name: string;
    readonly image: string;
    readonly essential: boolean;
  })[];
}

export interface ContainerState {
  readonly name: string;
  lastStatus: "PENDING" | "RUNNING" | "STOPPED";
  exitCode?: number;
  reason?: string;
}

export const ARN = "arn:aws:ecs:eu-west-1:000000000000";
let addressCount = 0;

export class EcsTask {
  readonly arn: string;
  readonly request: RunTaskCommandInput;
  readonly address = nextAddress();
  readonly createdAt = Date.now();
  readonly containers: ContainerState[];
  readonly running = new Map<string, LocalContainer>();
  readonly network = new TaskNetwork();
  /** At which its containers listen; `address` leads there. */
  readonly #inside = nextAddress();
  readonly #background: (work: Promise<void>) => void;
  lastStatus: "PROVISIONING" | "PENDING" | "RUNNING" | "DEPROVISIONING" | "STOPPED" = "PROVISIONING";
  desiredStatus: "RUNNING" | "STOPPED" = "RUNNING";
  startedAt?: number;
  stoppedAt?: number;
  stopCode?: string;
  stoppedReason?: string;
  /** How many more times ECS does not know it yet. */
  hiddenFor = 0;

  /** @param background takes what goes on after a request was answered */
  constructor(
    request: RunTaskCommandInput,
    definition: TaskDefinition | undefined,
    background: (work: Promise<void>) => void,
  ) {
    this.arn = `${ARN}:task/${request.cluster}/${randomUUID().replaceAll("-", "")}`;
    this.request = request;
    this.containers = (definition?.containerDefinitions ?? []).map(({ name }) => ({
      name,
      lastStatus: "PENDING",
    }));
    this.#background = background;
  }

  /** @param images folders that images stand for @param keptFile of each container, also when it has ended */
  async start(
    definition: TaskDefinition,
    images: ReadonlyMap<string, string>,
    fault: StartFault | undefined,
    keptFile?: string,
  ): Promise<void> {
    if (fault?.kind === "hidden") this.hiddenFor = fault.descriptions;
    if (fault?.kind === "slow") await sleep(fault.ms);
    if (fault?.kind === "never") {
      this.lastStatus = "PENDING";
      return;
    }
    if (fault?.kind === "stops") {
      await this.end(fault);
      for (const { name, ...state } of fault.containers ?? [])
        Object.assign(this.containers.find(container => container.name === name) ?? {}, state);
      return;
    }
    this.lastStatus = "PENDING";
    for (const container of definition.containerDefinitions) {
      if (this.desiredStatus === "STOPPED") return;
      const state = this.containers.find(({ name }) => name === container.name);
      if (state === undefined) continue;
      // The container that copies the toolkit: here the toolkit is mounted instead.
      if (container.entryPoint === undefined) {
        Object.assign(state, { lastStatus: "STOPPED", exitCode: 0 });
        continue;
      }
      const root = images.get(container.image);
      if (root === undefined) throw new Error(`no folder stands for ${container.image}`);
      const override = this.request.overrides?.containerOverrides?.find(
        ({ name }) => name === container.name,
      );
      const started = await startContainer(container as ContainerDefinition, {
        ...{ root, address: this.#inside, environment: override?.environment ?? [], keptFile },
      });
      this.running.set(container.name, started);
      state.lastStatus = "RUNNING";
      void started.ended.then(exitCode => this.#ended(state, exitCode, container.essential));
      for (const port of portsOf([...container.entryPoint, ...(container.command ?? [])]))
        await this.network.open(port, this.address, this.#inside);
    }
    if (this.desiredStatus === "STOPPED") return void (await this.kill());
    this.lastStatus = "RUNNING";
    this.startedAt = Date.now();
  }

  #ended(state: ContainerState, exitCode: number, isEssential: boolean): void {
    Object.assign(state, { lastStatus: "STOPPED", exitCode });
    if (!isEssential || this.desiredStatus === "STOPPED") return;
    const end = { stopCode: "EssentialContainerExited", stoppedReason: "Essential container in task exited" };
    this.#background(this.end(end));
  }

  /** @param stopMs from TERM to KILL */
  async stopByUser(stoppedReason: string, stopMs: number): Promise<void> {
    if (this.desiredStatus === "STOPPED") return;
    this.desiredStatus = "STOPPED";
    for (const { process } of this.running.values()) process.kill("SIGTERM");
    await sleep(stopMs);
    await this.end({ stopCode: "UserInitiated", stoppedReason });
  }

  async end({
    stopCode,
    stoppedReason,
    deprovisionMs = 0,
  }: {
    readonly stopCode?: string;
    readonly stoppedReason?: string;
    /** From its containers' end to its own. */
    readonly deprovisionMs?: number;
  }): Promise<void> {
    this.desiredStatus = "STOPPED";
    if (stopCode !== undefined) this.stopCode = stopCode;
    if (stoppedReason !== undefined) this.stoppedReason = stoppedReason;
    this.lastStatus = "DEPROVISIONING";
    await this.kill();
    for (const container of this.containers) container.lastStatus = "STOPPED";
    await sleep(deprovisionMs);
    this.lastStatus = "STOPPED";
    this.stoppedAt = Date.now();
  }

  async kill(): Promise<void> {
    this.network.close();
    for (const container of this.running.values()) container.kill();
    await Promise.all([...this.running.values()].map(({ ended }) => ended));
  }

  /** As DescribeTasks tells of it. */
  describe(withTags = true) {
    const { arn: taskArn, request, containers, lastStatus, desiredStatus, stopCode, stoppedReason } = this;
    const hasAddress = lastStatus !== "PROVISIONING" && lastStatus !== "STOPPED";
    const details = hasAddress ? [{ name: "privateIPv4Address", value: this.address }] : [];
    return {
      ...{ taskArn, lastStatus, desiredStatus, stopCode, stoppedReason, containers },
      clusterArn: `${ARN}:cluster/${request.cluster}`,
      taskDefinitionArn: request.taskDefinition,
      group: `family:${familyOf(request.taskDefinition ?? "")}`,
      startedBy: request.startedBy,
      overrides: request.overrides,
      attachments: [{ id: "eni", type: "ElasticNetworkInterface", status: "ATTACHED", details }],
      ...(withTags ? { tags: request.tags satisfies Tag[] | undefined } : {}),
      createdAt: this.createdAt / 1000,
      ...(this.startedAt === undefined ? {} : { startedAt: this.startedAt / 1000 }),
      ...(this.stoppedAt === undefined ? {} : { stoppedAt: this.stoppedAt / 1000 }),
    };
  }
}

/** At which a container listens on all of its addresses. */
function portsOf(words: readonly string[]): readonly number[] {
  return words.flatMap(word => {
    const [, port] = /^0\.0\.0\.0:(\d+)$/.exec(word) ?? [];
    return port === undefined ? [] : [Number(port)];
  });
}

/** Of a name, a name with its revision, or an ARN. */
export function familyOf(taskDefinition: string): string {
  return taskDefinition.replace(/^.*\//, "").replace(/:\d+$/, "");
}

/** One that no other task of this machine has, as far as processes do not share a number modulo 50,000. */
function nextAddress(): string {
  const count = addressCount++;
  return `127.${1 + (process.pid % 200)}.${(Math.floor(process.pid / 200) + Math.floor(count / 250)) % 256}.${1 + (count % 250)}`;
}
