// The part that Task, Parallel and Map share: try, try again as the retriers say, and hand what is left to a catcher.

import { toPayload } from "./json-value.ts";
import type { MapState, ParallelState, TaskState } from "./machine.ts";
import { matchesError, retryDelayMs } from "./retry.ts";
import { sleepUntil } from "./sleep.ts";
import { StateError } from "./state-error.ts";
import { finish, type Outcome, type Visit } from "./visit.ts";

export interface Attempt {
  /** Over the whole stay in the state, redrives included: part of every idempotency token. */
  readonly number: number;
  /** `$states.context.State.RetryCount` */
  readonly retryCount: number;
}

/** @throws StateError when no retrier is left and no catcher matches */
export async function runRetrying(
  visit: Visit & { readonly state: TaskState | ParallelState | MapState },
  attempt: (attempt: Attempt) => Promise<Outcome>,
): Promise<Outcome> {
  const { thread, state, step } = visit;
  const { execution } = thread;
  const { clock } = execution.world;
  const known = thread.progress.visit?.retry;
  const counts = state.retriers.map((_, index) => known?.counts[index] ?? 0);
  let number = known?.attempt ?? 0;
  if (known !== undefined) {
    thread.last = known.last;
    await sleepUntil(clock, known.resumeAtMs, thread.cancellation);
  }
  for (;;) {
    try {
      return await attempt({ number, retryCount: counts.reduce((sum, count) => sum + count, 0) });
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      thread.cancellation.check();
      // The first retrier that matches decides, also when its tries are used up.
      const index = state.retriers.findIndex(({ errorEquals }) => matchesError(errorEquals, error.errorName));
      const retrier = state.retriers[index];
      if (retrier === undefined || counts[index] >= retrier.maxAttempts) return await giveUp(visit, error);
      counts[index]++;
      number++;
      const resumeAtMs = clock.now() + retryDelayMs(retrier, counts[index], execution.random);
      execution.record(thread.progress, {
        kind: "retry",
        path: thread.progress.path,
        step,
        attempt: number,
        counts: [...counts],
        resumeAtMs,
        last: thread.last,
      });
      await sleepUntil(clock, resumeAtMs, thread.cancellation);
    }
  }
}

async function giveUp(
  visit: Visit & { readonly state: TaskState | ParallelState | MapState },
  error: StateError,
): Promise<Outcome> {
  const { thread, state } = visit;
  if (state.type !== "Task")
    thread.last = thread.execution.history.add(`${state.type}StateFailed`, thread.last);
  const catcher = state.catchers.find(({ errorEquals }) => matchesError(errorEquals, error.errorName));
  if (catcher === undefined) throw error;
  return finish(visit, catcher, toPayload(error.output), { errorOutput: error.output });
}
