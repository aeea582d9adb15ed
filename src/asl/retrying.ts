// The part that Task, Parallel and Map share: try, try again as the retriers say, and hand the last error to a catcher.
import { sleepUntil } from "./clock.ts";
import { toPayload } from "./json-value.ts";
import type { MapState, ParallelState, TaskState } from "./machine.ts";
import { matchesError, retryDelayMs } from "./retry.ts";
import { finish, type Outcome, type StateEntry } from "./state-entry.ts";
import { StateError } from "./state-error.ts";

export interface Attempt {
  /** 0 for the first try of this entry; part of every idempotency token. */
  readonly number: number;
  /** `$states.context.State.RetryCount` */
  readonly retryCount: number;
}

/** @throws StateError when no retrier is left and no catcher matches */
export async function runRetrying(
  entry: StateEntry & { readonly state: TaskState | ParallelState | MapState },
  attempt: (attempt: Attempt) => Promise<Outcome>,
): Promise<Outcome> {
  const { branch, state, step } = entry;
  const { execution } = branch;
  const { clock } = execution.runtime;
  const known = branch.progress.entry?.retry;
  const counts = state.retriers.map((_, index) => known?.counts[index] ?? 0);
  let number = known?.attempt ?? 0;
  if (known !== undefined) {
    branch.last = known.last;
    await sleepUntil(clock, known.resumeAtMs, branch.cancellation);
  }
  for (;;) {
    try {
      return await attempt({ number, retryCount: counts.reduce((sum, count) => sum + count, 0) });
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      branch.cancellation.check();
      // The first retrier that matches decides, also when its tries are used up.
      const index = state.retriers.findIndex(({ errorEquals }) => matchesError(errorEquals, error.errorName));
      const retrier = state.retriers[index];
      if (retrier === undefined || counts[index] >= retrier.maxAttempts) return await giveUp(entry, error);
      counts[index]++;
      number++;
      const resumeAtMs = clock.now() + retryDelayMs(retrier, counts[index], execution.random);
      execution.record(branch.progress, {
        kind: "retry",
        path: branch.progress.path,
        step,
        attempt: number,
        counts: [...counts],
        resumeAtMs,
        last: branch.last,
      });
      await sleepUntil(clock, resumeAtMs, branch.cancellation);
    }
  }
}

async function giveUp(
  entry: StateEntry & { readonly state: TaskState | ParallelState | MapState },
  error: StateError,
): Promise<Outcome> {
  const { branch, state } = entry;
  if (state.type !== "Task")
    branch.last = branch.execution.history.add(`${state.type}StateFailed`, branch.last);
  const catcher = state.catchers.find(({ errorEquals }) => matchesError(errorEquals, error.errorName));
  if (catcher === undefined) throw error;
  return finish(entry, catcher, toPayload(error.output), { errorOutput: error.output });
}
