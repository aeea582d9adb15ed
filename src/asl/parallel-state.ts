// Parallel: every branch gets the same input; the first that fails ends the others.
import { Cancellation, Cancelled } from "./cancellation.ts";
import { type Payload, parsePayload, toPayload } from "./json-value.ts";
import type { ParallelState, StateScope } from "./machine.ts";
import { threadBelow } from "./progress.ts";
import { runRetrying } from "./retrying.ts";
import { StateError } from "./state-error.ts";
import { Thread } from "./thread.ts";
import { evaluate, finish, type Outcome, type Visit } from "./visit.ts";

type ParallelVisit = Visit & { readonly state: ParallelState };

export function runParallel(visit: ParallelVisit): Promise<Outcome> {
  const { thread, state } = visit;
  return runRetrying(visit, async ({ number, retryCount }) => {
    const input =
      state.arguments === undefined
        ? visit.input
        : toPayload(await evaluate(visit, state.arguments, { retryCount }));
    const { history } = thread.execution;
    const started = history.add("ParallelStateStarted", thread.last);
    thread.last = started;
    const result = await runBranches(visit, input, number, started);
    history.add("ParallelStateSucceeded", thread.last);
    return finish(visit, state, result, { result: result.value, retryCount });
  });
}

async function runBranches(
  visit: ParallelVisit,
  input: Payload,
  attempt: number,
  started: number,
): Promise<Payload> {
  const { thread, state } = visit;
  const cancellation = Cancellation.below(thread.cancellation);
  const threads = state.branches.map(
    (_, index) =>
      new Thread({
        execution: thread.execution,
        progress: threadBelow(thread.progress, visit.step, attempt, index),
        cancellation,
        outer: thread,
        last: started,
      }),
  );
  for (const branch of threads) thread.inner.set(branch, undefined);
  let failed: { readonly error: unknown } | undefined;
  const runs = state.branches.map(async (scope, index) => {
    try {
      return await runBranch(scope, input, threads[index]);
    } catch (error) {
      if (failed === undefined && !(error instanceof Cancelled)) {
        failed = { error };
        if (error instanceof StateError) {
          thread.recordInnerAbort(threads[index].last);
          thread.last = threads[index].last;
        }
        cancellation.cancel();
      }
      return undefined;
    }
  });
  const outputs = await Promise.all(runs);
  cancellation.release();
  thread.inner.clear();
  if (failed !== undefined) throw failed.error;
  thread.cancellation.check();
  thread.last = Math.max(...threads.map(({ last }) => last));
  return toPayload(outputs.map(output => output?.value ?? null));
}

/** A branch that was through before a restart or redrive is not run again. */
async function runBranch(scope: StateScope, input: Payload, thread: Thread): Promise<Payload> {
  const { execution, progress } = thread;
  if (progress.done?.output !== undefined) {
    thread.last = progress.done.last;
    return parsePayload(progress.done.output);
  }
  const startMs = execution.world.clock.now();
  const output = await execution.world.runStates(scope, input, thread);
  execution.record(progress, {
    kind: "done",
    path: progress.path,
    output: output.text,
    startMs,
    stopMs: execution.world.clock.now(),
    last: thread.last,
  });
  return output;
}
