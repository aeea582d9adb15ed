// Runs state machines on this machine, with the calls of the Step Functions API. With a folder, everything is written
// down as it happens and a runner that was killed goes on where it stood when the next one opens the folder.
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { Cancellation } from "./cancellation.ts";
import { type Clock, realClock } from "./clock.ts";
import { describeExecution, type ExecutionDescription } from "./description.ts";
import { Executions } from "./executions.ts";
import type { Executors } from "./executor.ts";
import { statesExecutor } from "./executors/states.ts";
import { type FaultPlan, openFaults } from "./fault-plan.ts";
import { lockFolder } from "./folder-lock.ts";
import type { HistoryEvent } from "./history.ts";
import { exceedsBytes, type Json, toPayload } from "./json-value.ts";
import { loadDefinition } from "./load-definition.ts";
import { type Machine, taskStateNames } from "./machine.ts";
import { type MapRun, MapRuns } from "./map-runs.ts";
import { whyNotRedrivable } from "./redrive.ts";
import { runStates } from "./run-states.ts";
import { StateError } from "./state-error.ts";
import { TaskTokens } from "./task-tokens.ts";
import { AWS_LIMITS, type Limits, type World } from "./world.ts";

export interface RunnerOptions {
  /** Definitions by name: texts or parsed JSON. */
  readonly machines: Readonly<Record<string, string | Json>>;
  readonly executors?: Executors;
  readonly buckets?: Readonly<Record<string, ObjectStore>>;
  /** Where journals lie; without it nothing survives the process. One runner at a time. */
  readonly folder?: string;
  readonly clock?: Clock;
  readonly faults?: FaultPlan;
  readonly limits?: Partial<Limits>;
  /** Told of every event of an execution as it is recorded, but not of those of a Distributed Map's children. */
  readonly onEvent?: (executionArn: string, event: HistoryEvent) => void;
  /** `$random`, `$uuid` and jitter follow from it; left out, they differ from runner to runner. */
  readonly seed?: string;
  readonly region?: string;
  readonly account?: string;
}

export interface StartOptions {
  readonly machine: string;
  readonly input?: Json;
  /** Left out, a UUID. Starting the same name with the same input again while it runs is the same execution. */
  readonly name?: string;
  /** The task that starts it: a task that is tried again after a restart finds its execution by this. */
  readonly startedBy?: string;
}

/**
 * @throws InputError for a definition that is wrong or not supported, a corrupt journal, a fault that cannot fire
 * @throws Failure StoreUnavailable when the folder cannot be used or another runner has it
 */
export async function openRunner(options: RunnerOptions): Promise<LocalRunner> {
  const machines = new Map(
    Object.entries(options.machines).map(([name, definition]) => [name, loadDefinition(name, definition)]),
  );
  const folder = options.folder === undefined ? undefined : resolve(options.folder);
  const unlock = folder === undefined ? async () => {} : await lockFolder(folder);
  try {
    return new LocalRunner(machines, folder, options, unlock);
  } catch (error) {
    await unlock();
    throw error;
  }
}

export class LocalRunner {
  readonly #machines: ReadonlyMap<string, Machine>;
  readonly #world: World;
  readonly #unlock: () => Promise<void>;
  readonly #executions: Executions;
  readonly #work = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(
    machines: ReadonlyMap<string, Machine>,
    folder: string | undefined,
    options: RunnerOptions,
    unlock: () => Promise<void>,
  ) {
    this.#machines = machines;
    this.#unlock = unlock;
    const clock = options.clock ?? realClock;
    const { buckets = {} } = options;
    this.#world = {
      region: options.region ?? "us-east-1",
      account: options.account ?? "000000000000",
      clock,
      limits: { ...AWS_LIMITS, ...options.limits },
      executors: { ...options.executors, "states:startExecution": statesExecutor(this) },
      faults: openFaults(
        options.faults ?? [],
        new Set([...machines.values()].flatMap(taskStateNames)),
        clock,
      ),
      tokens: new TaskTokens(),
      mapRuns: new MapRuns(),
      children: new Map(),
      bucket: name => (Object.hasOwn(buckets, name) ? buckets[name] : undefined),
      seed: options.seed ?? randomUUID(),
      runStates,
      closing: new Cancellation(),
      track: work => this.#track(work),
    };
    this.#executions = new Executions(this.#world, folder, options.onEvent);
    this.#executions.reopen();
  }

  /**
   * @returns its ARN at once; `result` waits for its end
   * @throws InputError for an unknown machine, a name that is taken, an input that is too large
   */
  startExecution({ machine: name, input = {}, name: wanted, startedBy }: StartOptions): {
    readonly executionArn: string;
  } {
    if (this.#isClosed) throw new InputError("the runner is closed");
    const machine = this.#machines.get(name);
    if (machine === undefined)
      throw new InputError({
        what: "no such machine",
        where: name,
        expected: `expected one of ${[...this.#machines.keys()].join(", ")}`,
      });
    const executionName = wanted ?? randomUUID();
    if (!/^[\w.-]{1,80}$/.test(executionName))
      throw new InputError({
        what: "invalid execution name",
        where: executionName,
        expected: "1 to 80 letters, digits, dots, - or _",
      });
    const payload = toPayload(input);
    if (exceedsBytes(payload.text, this.#world.limits.payloadBytes))
      throw new InputError({
        what: "input too large",
        where: executionName,
        expected: `at most ${this.#world.limits.payloadBytes} bytes`,
      });
    const arn = `arn:aws:states:${this.#world.region}:${this.#world.account}:execution:${name}:${executionName}`;
    const known = this.#executions.find(arn);
    if (known !== undefined) {
      const isSame = known.execution.source.input.text === payload.text;
      const isOwn = startedBy !== undefined && known.startedBy === startedBy;
      if (isOwn || (isSame && known.execution.status === "RUNNING")) return { executionArn: arn };
      throw new InputError({ what: "execution exists already", where: arn, fix: "choose another name" });
    }
    this.#executions.start(machine, { arn, name: executionName, input: payload.text, startedBy });
    return { executionArn: arn };
  }

  /**
   * Waits for the end. A status of RUNNING says that the runner was closed before.
   *
   * @throws what broke the execution off without ending it: a bug, a full disk
   */
  async result(executionArn: string): Promise<ExecutionDescription> {
    const entry = this.#executions.get(executionArn);
    await entry.whenOver;
    return describeExecution(entry.execution);
  }

  /** Starts and waits. */
  async run(options: StartOptions): Promise<ExecutionDescription> {
    return this.result(this.startExecution(options).executionArn);
  }

  executionArns(): readonly string[] {
    return this.#executions.arns();
  }

  /** Also for children of Distributed Maps, while this runner lives. */
  describe(executionArn: string): ExecutionDescription {
    const child = this.#world.children.get(executionArn);
    return describeExecution(child ?? this.#executions.get(executionArn).execution);
  }

  /** As GetExecutionHistory. Also for children of Distributed Maps, while this runner lives. */
  history(executionArn: string): readonly HistoryEvent[] {
    const child = this.#world.children.get(executionArn);
    return (child ?? this.#executions.get(executionArn).execution).history.events;
  }

  mapRuns(executionArn: string): readonly MapRun[] {
    return this.#world.mapRuns.of(executionArn);
  }

  /** Children of Distributed Maps whose machine is `NAME/LABEL`, in the order they were started. */
  children(executionArn: string): readonly ExecutionDescription[] {
    const prefix = `${executionArn.slice(0, executionArn.lastIndexOf(":"))}/`;
    return [...this.#world.children.values()]
      .filter(({ source }) => source.arn.startsWith(prefix))
      .map(describeExecution);
  }

  /**
   * Lets go of what memory holds of an execution that has ended, and of ended children of its machine. Its journal stays,
   * and so does its name.
   */
  forget(executionArn: string): void {
    const { execution } = this.#executions.get(executionArn);
    if (execution.status === "RUNNING") return;
    this.#executions.forget(executionArn);
    for (const [arn, child] of this.#world.children)
      if (
        child.status !== "RUNNING" &&
        child.source.machineName.startsWith(`${execution.source.machineName}/`)
      )
        this.#world.children.delete(arn);
  }

  /** Ends an execution that runs; one that has ended stays as it is. */
  stopExecution(
    executionArn: string,
    { error, cause }: { readonly error?: string; readonly cause?: string } = {},
  ): void {
    // Closing ends the work of executions, not the executions: neither do those that waited for them end them.
    if (this.#isClosed) return;
    this.#executions.get(executionArn).execution.abort(new StateError(error, cause));
  }

  /**
   * Goes on from the state that failed, with the definition and input of the first start.
   *
   * @throws InputError when it runs, has succeeded, or ended more than 14 days ago
   */
  redriveExecution(executionArn: string): void {
    const refusal = whyNotRedrivable(this.#executions.get(executionArn).execution);
    if (refusal !== undefined)
      throw new InputError({ what: "cannot be redriven", where: executionArn, expected: refusal });
    this.#executions.redrive(executionArn);
  }

  /** @throws InputError when no task waits for the token */
  sendTaskSuccess(token: string, output: Json): void {
    this.#world.tokens.get(token).succeed(toPayload(output));
  }

  /** @throws InputError when no task waits for the token */
  sendTaskFailure(
    token: string,
    { error, cause }: { readonly error?: string; readonly cause?: string } = {},
  ): void {
    this.#world.tokens.get(token).fail(new StateError(error, cause));
  }

  /** @throws InputError when no task waits for the token */
  sendTaskHeartbeat(token: string): void {
    this.#world.tokens.get(token).beat();
  }

  /** Stops all work and waits until it has stopped. With a folder, executions go on when it is opened again. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#executions.cancel();
    this.#world.closing.cancel();
    while (this.#work.size > 0) await Promise.allSettled([...this.#work]);
    this.#executions.closeJournals();
    await this.#unlock();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #track(work: Promise<unknown>): void {
    const settled = work.then(
      () => {},
      () => {},
    );
    this.#work.add(settled);
    void settled.then(() => this.#work.delete(settled));
  }
}
