// One sequence of states under way: the top of an execution or a branch of a Parallel. It has variables of its own and
// sees those around it; it knows its newest event, to which the next one points.
import type { Cancellation } from "./cancellation.ts";
import type { Execution } from "./execution.ts";
import type { Json } from "./json-value.ts";
import type { BranchProgress } from "./progress.ts";

export class Branch {
  readonly execution: Execution;
  readonly progress: BranchProgress;
  readonly cancellation: Cancellation;
  readonly outer: Branch | undefined;
  /** Id of the newest event of this branch. */
  last: number;
  /** Type of the state under way, for the event that says it was aborted. */
  stateType: string | undefined;
  /** Branches of a Parallel under way. */
  inner: readonly Branch[] = [];

  constructor(options: {
    readonly execution: Execution;
    readonly progress: BranchProgress;
    readonly cancellation: Cancellation;
    readonly outer?: Branch;
    readonly last: number;
  }) {
    this.execution = options.execution;
    this.progress = options.progress;
    this.cancellation = options.cancellation;
    this.outer = options.outer;
    this.last = options.last;
  }

  /** Own variables over those of the branches around. */
  variables(): Record<string, Json> {
    return { ...this.outer?.variables(), ...this.progress.variables };
  }

  /** Writes the aborted events of the branches inside, when one of them failed and ends the others. */
  recordInnerAbort(previousEventId: number): void {
    for (const branch of this.inner) branch.#recordAbort(previousEventId);
  }

  #recordAbort(previousEventId: number): void {
    this.recordInnerAbort(previousEventId);
    // States of other types finish at once, so they are never aborted.
    if (this.stateType === "Task" || this.stateType === "Wait")
      this.execution.history.add(`${this.stateType}StateAborted`, previousEventId);
  }
}
