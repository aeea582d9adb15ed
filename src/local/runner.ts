// Runs state machines on this machine, with the calls of the Step Functions API. With a folder, everything is written
// down as it happens and a runner that was killed goes on where it stood when the next one opens the folder.
import { randomUUID } from "node:crypto";
import { join, resolve } from "node:path";
import { InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { Cancellation } from "./cancellation.ts";
import { type Clock, realClock } from "./clock.ts";
import { describeExecution, type ExecutionDescription } from "./description.ts";
import { Execution } from "./execution.ts";
import type { Executors } from "./executor.ts";
import { statesExecutor } from "./executors/states.ts";
import { type FaultPlan, openFaults } from "./fault-plan.ts";
import { lockFolder } from "./folder-lock.ts";
import type { HistoryEvent } from "./history.ts";
import { type JournalContents, JournalFile, listJournals } from "./journal-file.ts";
import { exceedsBytes, type Json, parsePayload, toPayload } from "./json-value.ts";
import { loadDefinition } from "./load-definition.ts";
import { type Machine, taskStateNames } from "./machine.ts";
import { type MapRun, MapRuns } from "./map-runs.ts";
import { applyRecord, emptyProgress, type ThreadProgress } from "./progress.ts";
import { whyNotRedrivable } from "./redrive.ts";
import { RunRecorder } from "./run-recorder.ts";
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

interface Entry {
  readonly machine: Machine;
  readonly recorder: RunRecorder;
  readonly progress: ThreadProgress;
  readonly startedBy: string | undefined;
  execution: Execution;
  /** Settles when the execution has ended or the runner has closed. */
  whenOver: Promise<void>;
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
  readonly #folder: string | undefined;
  readonly #world: World;
  readonly #unlock: () => Promise<void>;
  readonly #entries = new Map<string, Entry>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #onEvent: RunnerOptions["onEvent"];
  #isClosed = false;

  constructor(
    machines: ReadonlyMap<string, Machine>,
    folder: string | undefined,
    options: RunnerOptions,
    unlock: () => Promise<void>,
  ) {
    this.#machines = machines;
    this.#folder = folder;
    this.#unlock = unlock;
    this.#onEvent = options.onEvent;
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
    if (folder !== undefined) this.#reopen(folder);
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
    const arn = this.#executionArn(name, executionName);
    const known = this.#entries.get(arn);
    if (known !== undefined) {
      const isSame = known.execution.source.input.text === payload.text;
      const isOwn = startedBy !== undefined && known.startedBy === startedBy;
      if (isOwn || (isSame && known.execution.status === "RUNNING")) return { executionArn: arn };
      throw new InputError({ what: "execution exists already", where: arn, fix: "choose another name" });
    }
    const startMs = this.#world.clock.now();
    const journal =
      this.#folder === undefined
        ? undefined
        : JournalFile.create(join(this.#folder, `${name}@${executionName}.jsonl`), {
            kind: "execution",
            format: 1,
            arn,
            machine: name,
            definition: machine.definition,
            name: executionName,
            input: payload.text,
            startMs,
            ...(startedBy !== undefined && { startedBy }),
          });
    this.#enter(
      machine,
      { arn, name: executionName, input: payload.text, startMs, startedBy },
      this.#recorder(arn, journal),
      emptyProgress(),
      0,
    );
    return { executionArn: arn };
  }

  /**
   * Waits for the end. A status of RUNNING says that the runner was closed before.
   *
   * @throws what broke the execution off without ending it: a bug, a full disk
   */
  async result(executionArn: string): Promise<ExecutionDescription> {
    const entry = this.#entry(executionArn);
    await entry.whenOver;
    return describeExecution(entry.execution);
  }

  /** Starts and waits. */
  async run(options: StartOptions): Promise<ExecutionDescription> {
    return this.result(this.startExecution(options).executionArn);
  }

  executionArns(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /** Also for children of Distributed Maps, while this runner lives. */
  describe(executionArn: string): ExecutionDescription {
    const child = this.#world.children.get(executionArn);
    return describeExecution(child ?? this.#entry(executionArn).execution);
  }

  /** As GetExecutionHistory. Also for children of Distributed Maps, while this runner lives. */
  history(executionArn: string): readonly HistoryEvent[] {
    const child = this.#world.children.get(executionArn);
    return (child ?? this.#entry(executionArn).execution).history.events;
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
    const { execution } = this.#entry(executionArn);
    if (execution.status === "RUNNING") return;
    this.#entries.delete(executionArn);
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
    this.#entry(executionArn).execution.abort(new StateError(error, cause));
  }

  /**
   * Goes on from the state that failed, with the definition and input of the first start.
   *
   * @throws InputError when it runs, has succeeded, or ended more than 14 days ago
   */
  redriveExecution(executionArn: string): void {
    const entry = this.#entry(executionArn);
    const { execution, progress, recorder } = entry;
    const { source } = execution;
    const refusal = whyNotRedrivable(execution);
    if (refusal !== undefined)
      throw new InputError({ what: "cannot be redriven", where: executionArn, expected: refusal });
    const record = { kind: "redriven", timeMs: this.#world.clock.now() } as const;
    recorder.record(record);
    applyRecord(progress, record);
    const redriveCount = source.redriveCount + 1;
    this.#enter(
      entry.machine,
      { ...source, input: source.input.text, startedBy: entry.startedBy },
      recorder,
      progress,
      redriveCount,
      true,
    );
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
    for (const { execution } of this.#entries.values()) execution.cancellation.cancel();
    this.#world.closing.cancel();
    while (this.#work.size > 0) await Promise.allSettled([...this.#work]);
    for (const { recorder } of this.#entries.values()) recorder.close();
    await this.#unlock();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #entry(arn: string): Entry {
    const entry = this.#entries.get(arn);
    if (entry === undefined) throw new InputError({ what: "no such execution", where: arn });
    return entry;
  }

  #executionArn(machine: string, name: string): string {
    return `arn:aws:states:${this.#world.region}:${this.#world.account}:execution:${machine}:${name}`;
  }

  #recorder(
    arn: string,
    journal: JournalFile | undefined,
    events?: ReadonlyMap<string, HistoryEvent[]>,
  ): RunRecorder {
    return new RunRecorder(journal, {
      ...(events !== undefined && { events }),
      onEvent: (path, event) => {
        if (path === "") this.#onEvent?.(arn, event);
      },
    });
  }

  #reopen(folder: string): void {
    for (const path of listJournals(folder)) {
      const reopened = JournalFile.reopen(path);
      if (reopened === undefined) continue;
      const { journal, contents } = reopened;
      const { head, events } = contents;
      const progress = emptyProgress();
      for (const record of contents.records) applyRecord(progress, record);
      const machine = loadDefinition(head.machine, head.definition);
      this.#enter(machine, head, this.#recorder(head.arn, journal, events), progress, redrivesOf(contents));
    }
  }

  #enter(
    machine: Machine,
    head: {
      readonly arn: string;
      readonly name: string;
      readonly input: string;
      readonly startMs: number;
      readonly startedBy?: string;
    },
    recorder: RunRecorder,
    progress: ThreadProgress,
    redriveCount: number,
    isRedriven = false,
  ): void {
    const execution = new Execution(
      {
        arn: head.arn,
        name: head.name,
        machineArn: `arn:aws:states:${this.#world.region}:${this.#world.account}:stateMachine:${machine.name}`,
        machineName: machine.name,
        scope: machine,
        timeoutSeconds: machine.timeoutSeconds,
        input: parsePayload(head.input),
        startMs: head.startMs,
        progress,
        redriveCount,
      },
      this.#world,
      recorder,
    );
    if (isRedriven)
      execution.history.add("ExecutionRedriven", execution.history.events.length, { redriveCount });
    const entry: Entry = {
      machine,
      recorder,
      progress,
      startedBy: head.startedBy,
      execution,
      whenOver: Promise.resolve(),
    };
    this.#entries.set(head.arn, entry);
    if (execution.restoreEnd()) return;
    entry.whenOver = Promise.resolve()
      .then(() => execution.run())
      .finally(() => recorder.close());
    this.#track(entry.whenOver);
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

function redrivesOf({ records }: JournalContents): number {
  return records.filter(({ kind }) => kind === "redriven").length;
}
