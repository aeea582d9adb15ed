// One line of states being walked: the top of an execution, a branch of a Parallel, an iteration of a Map. It has
// variables of its own and sees those around it; it knows its newest event, to which the next one points.
import type { Cancellation } from "./cancellation.ts";
import type { Execution } from "./execution.ts";
import type { Json } from "./json-value.ts";
import type { ThreadProgress } from "./progress.ts";

export interface MapItem {
  readonly index: number;
  readonly value: Json;
}

export class Thread {
  readonly execution: Execution;
  readonly progress: ThreadProgress;
  readonly cancellation: Cancellation;
  /** Set in iterations of inline Maps, and inherited by what they contain. */
  readonly item: MapItem | undefined;
  readonly outer: Thread | undefined;
  /** Id of the newest event of this thread. */
  last: number;
  /** Type of the state under way, for the event that says it was aborted. */
  stateType: string | undefined;
  /** Threads of a Map or Parallel under way, with the event that an aborted one gets. */
  readonly inner = new Map<Thread, ((previousEventId: number) => void) | undefined>();

  constructor(options: {
    readonly execution: Execution;
    readonly progress: ThreadProgress;
    readonly cancellation: Cancellation;
    readonly item?: MapItem;
    readonly outer?: Thread;
    readonly last: number;
  }) {
    this.execution = options.execution;
    this.progress = options.progress;
    this.cancellation = options.cancellation;
    this.item = options.item ?? options.outer?.item;
    this.outer = options.outer;
    this.last = options.last;
  }

  /** Own variables over those of the threads around. */
  variables(): Record<string, Json> {
    return { ...this.outer?.variables(), ...this.progress.variables };
  }

  /** Writes the events of the threads inside, when one of them failed and ends the others. */
  recordInnerAbort(previousEventId: number): void {
    for (const [thread, iterationAborted] of this.inner) {
      iterationAborted?.(previousEventId);
      thread.recordAbort(previousEventId);
    }
  }

  /** The same, and the event of the state under way here. */
  recordAbort(previousEventId: number): void {
    this.recordInnerAbort(previousEventId);
    if (this.stateType !== undefined && ABORTED_EVENTS.has(this.stateType))
      this.execution.history.add(`${this.stateType}StateAborted`, previousEventId);
  }
}

/** The other kinds of state are over at once. */
const ABORTED_EVENTS = new Set(["Task", "Wait"]);
