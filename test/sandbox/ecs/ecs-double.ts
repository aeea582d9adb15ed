// Amazon ECS as far as sandboxes use it: its JSON protocol on a loopback port, for the real SDK. A task that is run here
// is really run (local-task.ts), from the definition that the deployment would register; and everything can be told to
// fail as ECS does (faults.ts). What it answers follows the ECS API reference, version 2014-11-13.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ECSClient, type RunTaskCommandInput, type Tag } from "@aws-sdk/client-ecs";
import type { RequestFault, StartFault } from "./faults.ts";
import { type ContainerDefinition, type LocalContainer, startContainer } from "./local-task.ts";

export interface TaskDefinition {
  readonly family: string;
  readonly containerDefinitions: readonly (Partial<ContainerDefinition> & {
    readonly name: string;
    readonly image: string;
    readonly essential: boolean;
  })[];
}

interface ContainerState {
  readonly name: string;
  lastStatus: "PENDING" | "RUNNING" | "STOPPED";
  exitCode?: number;
  reason?: string;
}

interface TaskState {
  readonly arn: string;
  readonly request: RunTaskCommandInput;
  readonly address: string;
  readonly createdAt: number;
  readonly containers: ContainerState[];
  readonly running: Map<string, LocalContainer>;
  lastStatus: "PROVISIONING" | "PENDING" | "RUNNING" | "DEPROVISIONING" | "STOPPED";
  desiredStatus: "RUNNING" | "STOPPED";
  startedAt?: number;
  stoppedAt?: number;
  stopCode?: string;
  stoppedReason?: string;
  hiddenFor: number;
}

export interface EcsDoubleOptions {
  readonly cluster: string;
  /** From TERM to KILL. */
  readonly stopMs?: number;
}

interface Scripted<Fault> {
  readonly fault: Fault;
  left: number;
}

const ARN = "arn:aws:ecs:eu-west-1:000000000000";
let addressCount = 0;

export class EcsDouble {
  /** Names of the operations that were asked for. */
  readonly calls: string[] = [];
  readonly #options: EcsDoubleOptions;
  readonly #tasks = new Map<string, TaskState>();
  readonly #images = new Map<string, string>();
  readonly #definitions = new Map<string, TaskDefinition>();
  readonly #requestFaults = new Map<string, Scripted<RequestFault>[]>();
  readonly #startFaults: Scripted<StartFault>[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #working = new Set<Promise<void>>();

  private constructor(options: EcsDoubleOptions) {
    this.#options = options;
  }

  static async open(options: EcsDoubleOptions): Promise<EcsDouble> {
    const double = new EcsDouble(options);
    double.#server.listen(0, "127.0.0.1");
    await once(double.#server, "listening");
    return double;
  }

  /** As the driver has it: one attempt per request. */
  client({ requestTimeout = 30_000 }: { readonly requestTimeout?: number } = {}): ECSClient {
    return new ECSClient({
      endpoint: this.url,
      region: "eu-west-1",
      credentials: { accessKeyId: "test", secretAccessKey: "test" },
      maxAttempts: 1,
      requestHandler: { requestTimeout, throwOnRequestTimeout: true },
    });
  }

  /** Where the SDK of another process finds it. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** @param root folder that the image stands for */
  addImage(reference: string, root: string): void {
    this.#images.set(reference, root);
  }

  register(definition: TaskDefinition): string {
    this.#definitions.set(definition.family, definition);
    return `${ARN}:task-definition/${definition.family}:1`;
  }

  /** The next requests of an operation end so. */
  failRequests(
    operation: "RunTask" | "DescribeTasks" | "ListTasks" | "StopTask",
    fault: RequestFault,
    times = 1,
  ): void {
    const faults = this.#requestFaults.get(operation) ?? [];
    this.#requestFaults.set(operation, [...faults, { fault, left: times }]);
  }

  /** The next tasks that are accepted start so. */
  failStarts(fault: StartFault, times = 1): void {
    this.#startFaults.push({ fault, left: times });
  }

  /** No request fails any more. */
  heal(): void {
    this.#requestFaults.clear();
  }

  /** Of every task that was accepted, in order. */
  get requests(): readonly RunTaskCommandInput[] {
    return [...this.#tasks.values()].map(({ request }) => request);
  }

  get arns(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  /** Those that cost money. */
  get livingArns(): readonly string[] {
    return [...this.#tasks.values()]
      .filter(({ lastStatus }) => lastStatus !== "STOPPED")
      .map(({ arn }) => arn);
  }

  statusOf(arn: string): Pick<TaskState, "lastStatus" | "desiredStatus" | "stopCode" | "stoppedReason"> {
    return this.#task(arn);
  }

  /** A task of somebody else in the cluster, such as a driver: it only is there. */
  addTask(name: string): string {
    const task = this.#newTask({ taskDefinition: name, cluster: this.#options.cluster });
    task.lastStatus = "RUNNING";
    return task.arn;
  }

  /** Ends as if AWS had ended it. */
  async stop(
    arn: string,
    end: {
      readonly stopCode?: string;
      readonly stoppedReason?: string;
      readonly container?: Partial<ContainerState>;
    },
  ): Promise<void> {
    const task = this.#task(arn);
    await this.#end(task, end);
    const own = task.containers.find(({ name }) => name === (end.container?.name ?? "agent"));
    if (own !== undefined) Object.assign(own, end.container);
    if (end.stopCode === undefined) delete task.stopCode;
  }

  /** Ends one container by KILL. */
  async killContainer(arn: string, name: string, reason?: string): Promise<void> {
    const task = this.#task(arn);
    const state = task.containers.find(container => container.name === name);
    if (state !== undefined && reason !== undefined) state.reason = reason;
    task.running.get(name)?.kill();
    await task.running.get(name)?.ended;
  }

  /** Its machine is gone, and ECS does not know it any more. */
  async lose(arn: string): Promise<void> {
    const task = this.#task(arn);
    await killAll(task);
    this.#tasks.delete(arn);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await Promise.all([...this.#tasks.values()].map(killAll));
    await Promise.all(this.#working);
    await Promise.all([...this.#tasks.values()].map(killAll));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const [, operation = ""] = `${request.headers["x-amz-target"]}`.split(".");
    this.calls.push(operation);
    const fault = takeNext(this.#requestFaults.get(operation));
    if (fault?.kind === "error") return answer(response, fault.status, errorBody(fault.type, fault.message));
    if (fault?.kind === "cut-before") return void response.destroy();
    if (fault?.kind === "failures") return answer(response, 200, { tasks: [], failures: fault.failures });
    try {
      const value = this.#perform(operation, JSON.parse(Buffer.concat(pieces).toString("utf8")));
      if (fault?.kind === "cut-after") response.destroy();
      else if (fault?.kind === "error-after")
        answer(response, fault.status, errorBody(fault.type, fault.message));
      else if (fault?.kind !== "silent-after") answer(response, 200, value);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      answer(response, 400, errorBody(error.type, error.message));
    }
  }

  #perform(operation: string, input: Record<string, unknown>): unknown {
    if (input.cluster !== this.#options.cluster)
      throw new Refused("ClusterNotFoundException", "Cluster not found.");
    switch (operation) {
      case "RunTask":
        return { tasks: [this.#describe(this.#run(input as unknown as RunTaskCommandInput))], failures: [] };
      case "DescribeTasks":
        return this.#describeAll(input.tasks as string[], (input.include as string[] | undefined) ?? []);
      case "ListTasks": {
        const matching = [...this.#tasks.values()].filter(
          ({ desiredStatus, request }) =>
            desiredStatus === "RUNNING" &&
            (input.startedBy === undefined || request.startedBy === input.startedBy),
        );
        return page(
          matching.map(({ arn }) => arn),
          input.nextToken as string | undefined,
        );
      }
      case "StopTask": {
        const task = this.#tasks.get(`${input.task}`);
        if (task === undefined)
          throw new Refused("InvalidParameterException", "The referenced task was not found.");
        const stoppedReason = (input.reason as string | undefined) ?? "Task stopped by user";
        this.#background(this.#stopByUser(task, stoppedReason));
        return { task: this.#describe(task) };
      }
      default:
        throw new Refused("UnknownOperationException", operation);
    }
  }

  #run(request: RunTaskCommandInput): TaskState {
    const definition = this.#definitions.get(familyOf(request.taskDefinition ?? ""));
    if (definition === undefined) throw new Refused("ClientException", "TaskDefinition not found.");
    assertRequest(request, definition);
    const { clientToken } = request;
    const same = [...this.#tasks.values()].find(task => task.request.clientToken === clientToken);
    if (clientToken !== undefined && same !== undefined) {
      if (JSON.stringify(same.request) === JSON.stringify(request)) return same;
      throw new Refused("ConflictException", "The clientToken was used with other parameters.");
    }
    const task = this.#newTask(request, definition);
    this.#background(this.#start(task, definition, takeNext(this.#startFaults)));
    return task;
  }

  #newTask(request: RunTaskCommandInput, definition?: TaskDefinition): TaskState {
    const task: TaskState = {
      arn: `${ARN}:task/${this.#options.cluster}/${randomUUID().replaceAll("-", "")}`,
      ...{ request, address: nextAddress(), createdAt: Date.now(), running: new Map(), hiddenFor: 0 },
      containers: (definition?.containerDefinitions ?? []).map(({ name }) => ({
        name,
        lastStatus: "PENDING",
      })),
      ...{ lastStatus: "PROVISIONING", desiredStatus: "RUNNING" },
    };
    this.#tasks.set(task.arn, task);
    return task;
  }

  async #start(task: TaskState, definition: TaskDefinition, fault: StartFault | undefined): Promise<void> {
    if (fault?.kind === "hidden") task.hiddenFor = fault.descriptions;
    if (fault?.kind === "slow") await sleep(fault.ms);
    if (fault?.kind === "never") {
      task.lastStatus = "PENDING";
      return;
    }
    if (fault?.kind === "stops") {
      await this.#end(task, fault);
      for (const { name, ...state } of fault.containers ?? [])
        Object.assign(task.containers.find(container => container.name === name) ?? {}, state);
      return;
    }
    task.lastStatus = "PENDING";
    for (const container of definition.containerDefinitions) {
      if (task.desiredStatus === "STOPPED") return;
      const state = task.containers.find(({ name }) => name === container.name);
      if (state === undefined) continue;
      // The container that copies the toolkit: here the toolkit is mounted instead.
      if (container.entryPoint === undefined) {
        Object.assign(state, { lastStatus: "STOPPED", exitCode: 0 });
        continue;
      }
      const root = this.#images.get(container.image);
      if (root === undefined) throw new Error(`no folder stands for ${container.image}`);
      const override = task.request.overrides?.containerOverrides?.find(
        ({ name }) => name === container.name,
      );
      const started = await startContainer(container as ContainerDefinition, {
        ...{ root, address: task.address, environment: override?.environment ?? [] },
      });
      task.running.set(container.name, started);
      state.lastStatus = "RUNNING";
      void started.ended.then(exitCode => this.#ended(task, state, exitCode, container.essential));
    }
    if (task.desiredStatus === "STOPPED") return void (await killAll(task));
    task.lastStatus = "RUNNING";
    task.startedAt = Date.now();
  }

  #ended(task: TaskState, state: ContainerState, exitCode: number, isEssential: boolean): void {
    Object.assign(state, { lastStatus: "STOPPED", exitCode });
    if (!isEssential || task.desiredStatus === "STOPPED") return;
    const end = { stopCode: "EssentialContainerExited", stoppedReason: "Essential container in task exited" };
    this.#background(this.#end(task, end));
  }

  async #stopByUser(task: TaskState, stoppedReason: string): Promise<void> {
    if (task.desiredStatus === "STOPPED") return;
    task.desiredStatus = "STOPPED";
    for (const { process } of task.running.values()) process.kill("SIGTERM");
    await sleep(this.#options.stopMs ?? 20);
    await this.#end(task, { stopCode: "UserInitiated", stoppedReason });
  }

  async #end(
    task: TaskState,
    { stopCode, stoppedReason }: { readonly stopCode?: string; readonly stoppedReason?: string },
  ): Promise<void> {
    task.desiredStatus = "STOPPED";
    if (stopCode !== undefined) task.stopCode = stopCode;
    if (stoppedReason !== undefined) task.stoppedReason = stoppedReason;
    task.lastStatus = "DEPROVISIONING";
    await killAll(task);
    for (const container of task.containers) container.lastStatus = "STOPPED";
    task.lastStatus = "STOPPED";
    task.stoppedAt = Date.now();
  }

  #describeAll(arns: readonly string[], include: readonly string[]) {
    if (arns.length > 100)
      throw new Refused("InvalidParameterException", "Tasks cannot have more than 100 elements");
    const known = arns.flatMap(arn => {
      const task = this.#tasks.get(arn);
      if (task === undefined || task.hiddenFor > 0) {
        if (task !== undefined) task.hiddenFor -= 1;
        return [];
      }
      return [task];
    });
    const missing = arns.filter(arn => !known.some(task => task.arn === arn));
    return {
      tasks: known.map(task => this.#describe(task, include.includes("TAGS"))),
      failures: missing.map(arn => ({ arn, reason: "MISSING" })),
    };
  }

  #describe(task: TaskState, withTags = true) {
    const { arn: taskArn, request, containers, lastStatus, desiredStatus, stopCode, stoppedReason } = task;
    const hasAddress = lastStatus !== "PROVISIONING" && lastStatus !== "STOPPED";
    const details = hasAddress ? [{ name: "privateIPv4Address", value: task.address }] : [];
    return {
      ...{ taskArn, lastStatus, desiredStatus, stopCode, stoppedReason, containers },
      clusterArn: `${ARN}:cluster/${this.#options.cluster}`,
      taskDefinitionArn: request.taskDefinition,
      group: `family:${familyOf(request.taskDefinition ?? "")}`,
      startedBy: request.startedBy,
      overrides: request.overrides,
      attachments: [{ id: "eni", type: "ElasticNetworkInterface", status: "ATTACHED", details }],
      ...(withTags ? { tags: request.tags satisfies Tag[] | undefined } : {}),
      createdAt: task.createdAt / 1000,
      ...(task.startedAt === undefined ? {} : { startedAt: task.startedAt / 1000 }),
      ...(task.stoppedAt === undefined ? {} : { stoppedAt: task.stoppedAt / 1000 }),
    };
  }

  #task(arn: string): TaskState {
    const task = this.#tasks.get(arn);
    if (task === undefined) throw new Error(`no such task: ${arn}`);
    return task;
  }

  #background(work: Promise<void>): void {
    this.#working.add(work);
    work.finally(() => this.#working.delete(work));
  }
}

class Refused extends Error {
  readonly type: string;

  constructor(type: string, message: string) {
    super(message);
    this.type = type;
  }
}

/** What RunTask refuses, as far as our requests could be wrong in it. */
function assertRequest(request: RunTaskCommandInput, definition: TaskDefinition): void {
  const refuse = (message: string): never => {
    throw new Refused("InvalidParameterException", message);
  };
  const { clientToken = "", startedBy = "", tags = [], overrides = {}, networkConfiguration } = request;
  if (clientToken.length > 64) refuse("clientToken is longer than 64 characters");
  if (startedBy.length > 128 || !/^[\w./-]*$/.test(startedBy)) refuse("startedBy is not valid");
  if (Buffer.byteLength(JSON.stringify(overrides)) > 8192)
    refuse("Container Overrides length must be at most 8192");
  if (tags.length > 50) refuse("too many tags");
  for (const { key = "", value = "" } of tags)
    if (key.length > 128 || value.length > 256 || !/^[\p{L}\p{N}\s_.:/=+@-]*$/u.test(value))
      refuse(`tag ${key}`);
  if ((networkConfiguration?.awsvpcConfiguration?.subnets ?? []).length === 0)
    refuse("subnets can not be empty.");
  for (const { name } of overrides.containerOverrides ?? [])
    if (!definition.containerDefinitions.some(container => container.name === name))
      refuse(`Override for container named ${name} is not a container in the TaskDefinition.`);
  if (request.launchType !== undefined && request.capacityProviderStrategy !== undefined)
    refuse("Specifying both a launch type and capacity provider strategy is not supported.");
}

async function killAll({ running }: TaskState): Promise<void> {
  for (const container of running.values()) container.kill();
  await Promise.all([...running.values()].map(({ ended }) => ended));
}

function takeNext<Fault>(faults: Scripted<Fault>[] | undefined): Fault | undefined {
  const [first] = faults ?? [];
  if (first === undefined) return undefined;
  first.left -= 1;
  if (first.left === 0) faults?.shift();
  return first.fault;
}

/** A hundred ARNs at a time. */
function page(taskArns: readonly string[], nextToken: string | undefined) {
  const start = Number(nextToken ?? 0);
  const end = start + 100;
  return { taskArns: taskArns.slice(start, end), ...(end < taskArns.length ? { nextToken: `${end}` } : {}) };
}

/** Of a name, a name with its revision, or an ARN. */
function familyOf(taskDefinition: string): string {
  return taskDefinition.replace(/^.*\//, "").replace(/:\d+$/, "");
}

/** One that no other task of this machine has, as far as processes do not share a number modulo 50,000. */
function nextAddress(): string {
  const count = addressCount++;
  return `127.${1 + (process.pid % 200)}.${(Math.floor(process.pid / 200) + Math.floor(count / 250)) % 256}.${1 + (count % 250)}`;
}

function errorBody(type: string, message: string) {
  return { __type: `com.amazonaws.ecs#${type}`, message };
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, {
    "content-type": "application/x-amz-json-1.1",
    "x-amzn-requestid": randomUUID(),
  });
  response.end(JSON.stringify(value));
}
