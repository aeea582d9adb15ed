// One execution, of a state machine or of one item of a Distributed Map: its input, history, progress and end. What
// holds: after the event that ends it nothing is recorded.
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { Cancellation, Cancelled } from "./cancellation.ts";
import { History, type HistoryEvent, HistoryFull } from "./history.ts";
import { type Payload, parsePayload } from "./json-value.ts";
import { randomFunctions } from "./jsonata-functions.ts";
import type { StateScope } from "./machine.ts";
import { applyToThread, type ProgressRecord, type ThreadProgress } from "./progress.ts";
import { StateError } from "./state-error.ts";
import { Thread } from "./thread.ts";
import type { World } from "./world.ts";

export type ExecutionStatus = "RUNNING" | "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "ABORTED";

/** What writes an execution down. */
export interface Recorder {
  record(record: ProgressRecord): void;
  /** @param path of the execution's top thread: `""`, or that of an item */
  event(path: string, event: HistoryEvent): void;
  /** The list that an execution goes on with. */
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
  readonly progress: ThreadProgress;
  readonly redriveCount: number;
}

export class Execution {
  readonly source: ExecutionSource;
  readonly world: World;
  readonly history: History;
  readonly cancellation: Cancellation;
  readonly recorder: Recorder;
  #random: RandomStream | undefined;
  #randomFunctions: Readonly<Record<string, unknown>> | undefined;
  status: ExecutionStatus = "RUNNING";
  output: Payload | undefined;
  error: StateError | undefined;
  stopMs: number | undefined;
  /** What broke the execution off outside of its own run, in a timer. */
  #broken: { readonly error: unknown } | undefined;

  constructor(source: ExecutionSource, world: World, recorder: Recorder, parent?: Cancellation) {
    this.source = source;
    this.world = world;
    this.recorder = recorder;
    this.cancellation = parent === undefined ? new Cancellation() : Cancellation.below(parent);
    this.history = new History(world.clock, {
      limit: world.limits.historyEvents,
      events: recorder.eventsOf(source.progress.path),
      onEvent: event => recorder.event(source.progress.path, event),
    });
  }

  /** `$random` and `$uuid`, and the jitter of retriers. Another one after each restart: numbers must not repeat. */
  get random(): RandomStream {
    this.#random ??= new RandomStream(
      deriveSeed(this.world.seed, this.source.arn, this.history.events.length),
    );
    return this.#random;
  }

  get randomFunctions(): Readonly<Record<string, unknown>> {
    this.#randomFunctions ??= randomFunctions(this.random);
    return this.#randomFunctions;
  }

  /** Writes a record and takes it into the tree. */
  record(thread: ThreadProgress, record: Exclude<ProgressRecord, { readonly kind: "redriven" }>): void {
    applyToThread(thread, record);
    this.recorder.record(record);
  }

  /**
   * Runs to the end, from where the progress stands.
   *
   * @throws what is neither a state's failure nor an end: a bug, a full disk. The execution stays open then.
   */
  async run(): Promise<void> {
    const { clock } = this.world;
    const { source, history } = this;
    const timer =
      source.timeoutSeconds === undefined
        ? undefined
        : clock.at(timeoutStart(source, history.events) + source.timeoutSeconds * 1000, () => this.timeOut());
    const thread = new Thread({
      execution: this,
      progress: source.progress,
      cancellation: this.cancellation,
      last: lastEventOf(source.progress, history.events),
    });
    try {
      if (history.events.length === 0)
        history.add("ExecutionStarted", 0, {
          input: source.input.text,
          inputDetails: { truncated: false },
          roleArn: roleArn(this.world),
        });
      const output = await this.world.runStates(source.scope, source.input, thread);
      if (this.status === "RUNNING") {
        this.output = output;
        this.#end("SUCCEEDED", thread.last, { output: output.text, outputDetails: { truncated: false } });
      }
    } catch (error) {
      if (error instanceof StateError && this.status === "RUNNING") this.#fail(error, thread.last);
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

  /** Takes over the end that its history has. @returns whether it has one */
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
    this.stopMs = this.world.clock.now();
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

/** A redrive has the whole time again. */
function timeoutStart({ startMs }: ExecutionSource, events: readonly HistoryEvent[]): number {
  const redriven = events.findLast(({ type }) => type === "ExecutionRedriven");
  return redriven === undefined ? startMs : Date.parse(redriven.timestamp);
}

export function roleArn({ account }: World): string {
  return `arn:aws:iam::${account}:role/local`;
}

/** The first state points to event 0, as AWS has it; after a restart or redrive it points to what is there. */
function lastEventOf({ exited }: ThreadProgress, events: readonly HistoryEvent[]): number {
  if (exited !== undefined) return exited.last;
  const newest = events.at(-1);
  return newest?.type === "ExecutionRedriven" ? newest.id : 0;
}

function historyFull(): StateError {
  return new StateError("States.Runtime", "The execution reached the maximum number of history events.");
}
