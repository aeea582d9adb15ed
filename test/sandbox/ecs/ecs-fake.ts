// Amazon ECS as far as sandboxes use it: its JSON protocol on a loopback port, for the real SDK. A task that is run here
// is really run (ecs-task.ts), from the definition that the deployment would register; and everything can be told to
// fail as ECS does (faults.ts). What it answers follows the ECS API reference, version 2014-11-13.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ECSClient, type RunTaskCommandInput } from "@aws-sdk/client-ecs";
import { ARN, type ContainerState, EcsTask, familyOf, type TaskDefinition } from "./ecs-task.ts";
import type { RequestFault, StartFault } from "./faults.ts";
import type { LocalContainer } from "./local-task.ts";
import { assertRequest, Refused } from "./refusals.ts";

export interface EcsFakeOptions {
  readonly cluster: string;
  /** From TERM to KILL. */
  readonly stopMs?: number;
  /** Path inside containers, which can be read when they have ended. */
  readonly keptFile?: string;
}

interface Scripted<Fault> {
  readonly fault: Fault;
  left: number;
}

export class EcsFake {
  /** Names of the operations that were asked for. */
  readonly calls: string[] = [];
  readonly #options: EcsFakeOptions;
  readonly #tasks = new Map<string, EcsTask>();
  readonly #images = new Map<string, string>();
  readonly #definitions = new Map<string, TaskDefinition>();
  readonly #requestFaults = new Map<string, Scripted<RequestFault>[]>();
  readonly #startFaults: Scripted<StartFault>[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #working = new Set<Promise<void>>();

  private constructor(options: EcsFakeOptions) {
    this.#options = options;
  }

  static async open(options: EcsFakeOptions): Promise<EcsFake> {
    const fake = new EcsFake(options);
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
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

  statusOf(arn: string): Pick<EcsTask, "lastStatus" | "desiredStatus" | "stopCode" | "stoppedReason"> {
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
      readonly deprovisionMs?: number;
      readonly container?: Partial<ContainerState>;
    },
  ): Promise<void> {
    const task = this.#task(arn);
    await task.end(end);
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

  /** Ends what drivers have open to a task; they can call again. */
  cut(arn: string): void {
    this.#task(arn).network.cut();
  }

  /** Lets no driver through to a task, until it is unblocked. */
  block(arn: string, isBlocked: boolean): void {
    this.#task(arn).network.isBlocked = isBlocked;
    if (isBlocked) this.cut(arn);
  }

  /** Of a container that runs or has run. */
  container(arn: string, name: string): Pick<LocalContainer, "process" | "read"> | undefined {
    return this.#task(arn).running.get(name);
  }

  /** Its machine is gone, and ECS does not know it any more. */
  async lose(arn: string): Promise<void> {
    const task = this.#task(arn);
    this.#tasks.delete(arn);
    await task.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await Promise.all([...this.#tasks.values()].map(task => task.kill()));
    await Promise.all(this.#working);
    await Promise.all([...this.#tasks.values()].map(task => task.kill()));
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
        return { tasks: [this.#run(input as unknown as RunTaskCommandInput).describe()], failures: [] };
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
        this.#background(task.stopByUser(stoppedReason, this.#options.stopMs ?? 20));
        return { task: task.describe() };
      }
      default:
        throw new Refused("UnknownOperationException", operation);
    }
  }

  #run(request: RunTaskCommandInput): EcsTask {
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
    const fault = takeNext(this.#startFaults);
    this.#background(task.start(definition, this.#images, fault, this.#options.keptFile));
    return task;
  }

  #newTask(request: RunTaskCommandInput, definition?: TaskDefinition): EcsTask {
    const task = new EcsTask(request, definition, work => this.#background(work));
    this.#tasks.set(task.arn, task);
    return task;
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
      tasks: known.map(task => task.describe(include.includes("TAGS"))),
      failures: missing.map(arn => ({ arn, reason: "MISSING" })),
    };
  }

  #task(arn: string): EcsTask {
    const task = this.#tasks.get(arn);
    if (task === undefined) throw new Error(`no such task: ${arn}`);
    return task;
  }

  #background(work: Promise<void>): void {
    this.#working.add(work);
    work.finally(() => this.#working.delete(work));
  }
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
