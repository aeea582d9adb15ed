// Runs state machines locally, with the calls of the Step Functions API. A runner with a folder writes a journal of all
// that happens; when it is killed, the next runner that opens the folder goes on where it stood.
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type Clock, realClock } from "./clock.ts";
import { describeExecution, type ExecutionDescription } from "./description.ts";
import { Executions } from "./executions.ts";
import type { Executors } from "./executor.ts";
import { statesExecutor } from "./executors/states.ts";
import { lockFolder } from "./folder-lock.ts";
import type { HistoryEvent } from "./history.ts";
import { exceedsBytes, type Json, toPayload } from "./json-value.ts";
import { loadDefinition } from "./load-definition.ts";
import type { Machine } from "./machine.ts";
import { runStates } from "./run-states.ts";
import { AWS_LIMITS, type Limits, type RuntimeContext } from "./runtime-context.ts";
import { StateError } from "./state-error.ts";

export interface RunnerOptions {
  /** Definitions by name: texts or parsed JSON. */
  readonly machines: Readonly<Record<string, string | Json>>;
  readonly executors?: Executors;
  readonly buckets?: Readonly<Record<string, ObjectStore>>;
  /** Folder of the journals, for one runner at a time. Without it nothing survives the process. */
  readonly folder?: string;
  readonly clock?: Clock;
  readonly limits?: Partial<Limits>;
  /** Called with every event of an execution as it is recorded, but not with those of a Distributed Map's children. */
  readonly onEvent?: (executionArn: string, event: HistoryEvent) => void;
  /** `$random`, `$uuid` and jitter follow from it. Without it they differ from runner to runner. */
  readonly seed?: string;
  readonly region?: string;
  readonly account?: string;
}

export interface StartOptions {
  readonly machine: string;
  readonly input?: Json;
  /** A UUID by default. Starting the same name with the same input again while it runs gives the same execution. */
  readonly name?: string;
  /** The task that starts it; a task that is tried again after a restart finds its execution by this. */
  readonly startedBy?: string;
}

/**
 * @throws InputError for a definition that is wrong or not supported, or a corrupt journal
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
  readonly #runtime: RuntimeContext;
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
    this.#runtime = {
      region: options.region ?? "us-east-1",
      account: options.account ?? "000000000000",
      clock,
      limits: { ...AWS_LIMITS, ...options.limits },
      executors: { ...options.executors, "states:startExecution": statesExecutor(this) },
      children: new Map(),
      bucket: name => (Object.hasOwn(buckets, name) ? buckets[name] : undefined),
      seed: options.seed ?? randomUUID(),
      runStates,
      track: work => this.#track(work),
    };
    this.#executions = new Executions(this.#runtime, folder, options.onEvent);
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
    if (exceedsBytes(payload.text, this.#runtime.limits.payloadBytes))
      throw new InputError({
        what: "input too large",
        where: executionName,
        expected: `at most ${this.#runtime.limits.payloadBytes} bytes`,
      });
    const arn = `arn:aws:states:${this.#runtime.region}:${this.#runtime.account}:execution:${name}:${executionName}`;
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
   * @throws the error that broke the execution off without ending it: a bug, a full disk
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

  /** Finds children of Distributed Maps too, while this runner lives. */
  describe(executionArn: string): ExecutionDescription {
    const child = this.#runtime.children.get(executionArn);
    return describeExecution(child ?? this.#executions.get(executionArn).execution);
  }

  /** As GetExecutionHistory. Finds children of Distributed Maps too, while this runner lives. */
  history(executionArn: string): readonly HistoryEvent[] {
    const child = this.#runtime.children.get(executionArn);
    return (child ?? this.#executions.get(executionArn).execution).history.events;
  }

  /** Children of an execution's Distributed Maps (machine `NAME/LABEL`), in the order they were started. */
  children(executionArn: string): readonly ExecutionDescription[] {
    const prefix = `${executionArn.slice(0, executionArn.lastIndexOf(":"))}/`;
    return [...this.#runtime.children.values()]
      .filter(({ source }) => source.arn.startsWith(prefix))
      .map(describeExecution);
  }

  /**
   * Frees the memory of an execution that has ended, and of ended children of its machine. Its journal and its name
   * stay.
   */
  forget(executionArn: string): void {
    const { execution } = this.#executions.get(executionArn);
    if (execution.status === "RUNNING") return;
    this.#executions.forget(executionArn);
    for (const [arn, child] of this.#runtime.children)
      if (
        child.status !== "RUNNING" &&
        child.source.machineName.startsWith(`${execution.source.machineName}/`)
      )
        this.#runtime.children.delete(arn);
  }

  /** Ends an execution that runs and leaves one that has ended as it is. */
  stopExecution(
    executionArn: string,
    { error, cause }: { readonly error?: string; readonly cause?: string } = {},
  ): void {
    // A closing runner ends the work of executions and leaves them open, also those that others wait for.
    if (this.#isClosed) return;
    this.#executions.get(executionArn).execution.abort(new StateError(error, cause));
  }

  /** Stops all work and waits for its end. With a folder, executions go on when the folder is opened again. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#executions.cancel();
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
