// One execution, of a state machine or of one item of a Distributed Map: its input, history, progress and end. Nothing
// is recorded after the event that ends it.
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { Branch } from "./branch.ts";
import { Cancellation, Cancelled } from "./cancellation.ts";
import { History, type HistoryEvent, HistoryFull } from "./history.ts";
import { type Payload, parsePayload } from "./json-value.ts";
import { randomFunctions } from "./jsonata-functions.ts";
import type { StateScope } from "./machine.ts";
import { applyToBranch, type BranchProgress, type ProgressRecord } from "./progress.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { StateError } from "./state-error.ts";

export type ExecutionStatus = "RUNNING" | "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "ABORTED";

/** Writes an execution down. */
export interface Recorder {
  record(record: ProgressRecord): void;
  /** @param path of the execution's top branch: `""`, or that of an item */
  event(path: string, event: HistoryEvent): void;
  /** The events recorded so far; the execution adds its own to this list. */
  eventsOf(path: string): HistoryEvent[];
}

export interface ExecutionSource {
  readonly arn: string;
  readonly name: string;
  readonly machineArn: string;
  readonly machineName: string;
  readonly scope: StateScope;
  readonly timeoutSeconds: number | undefined;
  readonly input: Payload;
  readonly startMs: number;
  readonly progress: BranchProgress;
}

export class Execution {
  readonly source: ExecutionSource;
  readonly runtime: RuntimeContext;
  readonly history: History;
  readonly cancellation: Cancellation;
  readonly recorder: Recorder;
  #random: RandomStream | undefined;
  #randomFunctions: Readonly<Record<string, unknown>> | undefined;
  status: ExecutionStatus = "RUNNING";
  output: Payload | undefined;
  error: StateError | undefined;
  stopMs: number | undefined;
  /** The error that broke the execution off in a timer, outside of its own run. */
  #broken: { readonly error: unknown } | undefined;

  constructor(source: ExecutionSource, runtime: RuntimeContext, recorder: Recorder, parent?: Cancellation) {
    this.source = source;
    this.runtime = runtime;
    this.recorder = recorder;
    this.cancellation = parent === undefined ? new Cancellation() : Cancellation.below(parent);
    this.history = new History(runtime.clock, {
      limit: runtime.limits.historyEvents,
      events: recorder.eventsOf(source.progress.path),
      onEvent: event => recorder.event(source.progress.path, event),
    });
  }

  /** For `$random`, `$uuid` and the jitter of retriers. Each restart has another one: numbers must not repeat. */
  get random(): RandomStream {
    this.#random ??= new RandomStream(
      deriveSeed(this.runtime.seed, this.source.arn, this.history.events.length),
    );
    return this.#random;
  }

  get randomFunctions(): Readonly<Record<string, unknown>> {
    this.#randomFunctions ??= randomFunctions(this.random);
    return this.#randomFunctions;
  }

  /** Writes a record and takes it into the tree. */
  record(branch: BranchProgress, record: ProgressRecord): void {
    applyToBranch(branch, record);
    this.recorder.record(record);
  }

  /**
   * Runs to the end, from where the progress stands.
   *
   * @throws any error that is neither a state's failure nor an end: a bug, a full disk. The execution stays open then.
   */
  async run(): Promise<void> {
    const { clock } = this.runtime;
    const { source, history } = this;
    const timer =
      source.timeoutSeconds === undefined
        ? undefined
        : clock.at(source.startMs + source.timeoutSeconds * 1000, () => this.timeOut());
    const branch = new Branch({
      execution: this,
      progress: source.progress,
      cancellation: this.cancellation,
      // The first state points to event 0, as AWS has it.
      last: source.progress.exited?.last ?? 0,
    });
    try {
      if (history.events.length === 0)
        history.add("ExecutionStarted", 0, {
          input: source.input.text,
          inputDetails: { truncated: false },
          roleArn: roleArn(this.runtime),
        });
      const output = await this.runtime.runStates(source.scope, source.input, branch);
      if (this.status === "RUNNING") {
        this.output = output;
        this.#end("SUCCEEDED", branch.last, { output: output.text, outputDetails: { truncated: false } });
      }
    } catch (error) {
      if (error instanceof StateError && this.status === "RUNNING") this.#fail(error, branch.last);
      else if (error instanceof HistoryFull && this.status === "RUNNING")
        this.#fail(historyFull(), history.events.length);
      else if (!(error instanceof Cancelled || error instanceof StateError || error instanceof HistoryFull))
        throw error;
    } finally {
      timer?.cancel();
      this.cancellation.cancel();
    }
    if (this.#broken !== undefined) throw this.#broken.error;
  }

  /** Takes over the end of an execution whose history has one. @returns whether it has one */
  restoreEnd(): boolean {
    const newest = this.history.events.at(-1);
    const status = STATUSES.find(one => END_EVENTS[one] === newest?.type);
    if (newest === undefined || status === undefined) return false;
    const details = (Object.entries(newest).find(([key]) => key.endsWith("EventDetails"))?.[1] ?? {}) as {
      readonly output?: string;
      readonly error?: string;
      readonly cause?: string;
    };
    this.status = status;
    this.stopMs = Date.parse(newest.timestamp);
    if (details.output !== undefined) this.output = parsePayload(details.output);
    if (status !== "SUCCEEDED") this.error = new StateError(details.error, details.cause);
    return true;
  }

  timeOut(): void {
    if (this.status !== "RUNNING") return;
    this.error = new StateError("States.Timeout");
    try {
      this.#end("TIMED_OUT", this.history.events.length, { error: "States.Timeout" });
    } catch (error) {
      this.#broken = { error };
    }
    this.cancellation.cancel();
  }

  abort(error: StateError): void {
    if (this.status !== "RUNNING") return;
    this.error = error;
    this.#end("ABORTED", this.history.events.length, error.details);
    this.cancellation.cancel();
  }

  #fail(error: StateError, previousEventId: number): void {
    this.error = error;
    this.#end("FAILED", previousEventId, error.details);
  }

  #end(status: Exclude<ExecutionStatus, "RUNNING">, previousEventId: number, details: object): void {
    this.status = status;
    this.stopMs = this.runtime.clock.now();
    this.history.end(END_EVENTS[status], previousEventId, details);
  }
}

const END_EVENTS: Readonly<Record<Exclude<ExecutionStatus, "RUNNING">, string>> = {
  SUCCEEDED: "ExecutionSucceeded",
  FAILED: "ExecutionFailed",
  TIMED_OUT: "ExecutionTimedOut",
  ABORTED: "ExecutionAborted",
};
const STATUSES = Object.keys(END_EVENTS) as (keyof typeof END_EVENTS)[];

export function roleArn({ account }: RuntimeContext): string {
  return `arn:aws:iam::${account}:role/local`;
}

function historyFull(): StateError {
  return new StateError("States.Runtime", "The execution reached the maximum number of history events.");
}
