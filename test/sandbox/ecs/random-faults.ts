// Faults of ECS and of its tasks as chance has it, for loads: only such as pass, or as cost no more than one sandbox.
import { TAG } from "../../../src/sandbox/fargate/task-request.ts";
import { listProcesses } from "../processes.ts";
import type { EcsFake } from "./ecs-fake.ts";
import { FAILURES, REFUSALS, type RequestFault, STOPS, type StartFault } from "./faults.ts";

type Operation = Parameters<EcsFake["failRequests"]>[0];

const ANYWHERE: Readonly<Record<string, RequestFault>> = {
  throttled: REFUSALS.throttled,
  "server error": REFUSALS["server error"],
  unavailable: REFUSALS.unavailable,
  "cut before": { kind: "cut-before" },
  "cut after": { kind: "cut-after" },
  silent: { kind: "silent-after" },
};
const REQUESTS: Readonly<Record<Operation, Readonly<Record<string, RequestFault>>>> = {
  RunTask: {
    ...ANYWHERE,
    "throttled look-up": REFUSALS["throttled look-up"],
    "vCPU limit": REFUSALS["vCPU limit"],
    "token used": REFUSALS["token used"],
    "no capacity": REFUSALS["capacity exception"],
    "no capacity, as a failure": FAILURES.capacity,
    "no addresses": FAILURES.resource,
    "neither task nor failure": FAILURES.nothing,
    "done, and an error": { kind: "error-after", status: 500, type: "ServerException", message: "" },
  },
  DescribeTasks: { ...ANYWHERE, "knows nothing": FAILURES.nothing },
  ListTasks: ANYWHERE,
  StopTask: ANYWHERE,
};

const STARTS: Readonly<Record<string, StartFault>> = {
  "Spot before the start": STOPS["Spot before the start"],
  "no capacity": STOPS["no capacity"],
  "pull timed out": STOPS["pull timed out"],
  "resources not initialised": STOPS["resources not initialised"],
  "host lost": STOPS["host lost"],
  "killed from outside": STOPS["killed from outside"],
  "unknown for a while": { kind: "hidden", descriptions: 5 },
  slow: { kind: "slow", ms: 300 },
};

export class EcsFaults {
  /** How often each was chosen. */
  readonly counts: Record<string, number> = {};
  readonly #ecs: EcsFake;

  constructor(ecs: EcsFake) {
    this.#ecs = ecs;
  }

  /** Tasks whose agent's container runs. */
  running(): readonly string[] {
    return this.#ecs.livingArns.filter(arn => {
      const { exitCode, signalCode } = this.#ecs.container(arn, "agent")?.process ?? {};
      return exitCode === null && signalCode === null;
    });
  }

  /** The agent's container of the task that a lease has got. */
  containerOf(leaseId: string) {
    const own = this.#ecs.arns.filter((_, index) =>
      this.#ecs.requests[index]?.tags?.some(({ key, value }) => key === TAG.lease && value === leaseId),
    );
    const container = own.map(arn => this.#ecs.container(arn, "agent")).findLast(one => one !== undefined);
    if (container === undefined) throw new Error(`no container for ${leaseId}`);
    return container;
  }

  /** @returns nothing where it has not started yet, or is about to end */
  daemonOf(arn: string): number | undefined {
    const container = this.#ecs.container(arn, "agent")?.process.pid;
    return listProcesses().find(({ parent }) => parent === container)?.pid;
  }

  failRequest(random: () => number): void {
    const [operation, faults] = this.#pick(
      Object.entries(REQUESTS) as [Operation, (typeof REQUESTS)[Operation]][],
      random,
    );
    const [name, fault] = this.#pick(Object.entries(faults), random);
    this.#count(`${operation}: ${name}`);
    this.#ecs.failRequests(operation, fault);
  }

  failStart(random: () => number): void {
    const [name, fault] = this.#pick(Object.entries(STARTS), random);
    this.#count(`start: ${name}`);
    this.#ecs.failStarts(fault);
  }

  async endTask(arn: string, random: () => number): Promise<void> {
    const ends: Readonly<Record<string, () => Promise<void>>> = {
      Spot: () =>
        this.#ecs.stop(arn, {
          stopCode: "SpotInterruption",
          stoppedReason: "Your Spot Task was interrupted.",
        }),
      "its host is lost and it is unknown": () => this.#ecs.lose(arn),
      "killed from outside": () => this.#ecs.killContainer(arn, "agent"),
    };
    const [name, end] = this.#pick(Object.entries(ends), random);
    this.#count(`task: ${name}`);
    await end();
  }

  #pick<T>(list: readonly T[], random: () => number): T {
    const picked = list[Math.floor(random() * list.length)];
    if (picked === undefined) throw new Error("nothing to choose from");
    return picked;
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }
}
