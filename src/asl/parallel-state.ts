// Runs a Parallel state: every branch gets the same input; the first one that fails ends the others.
import { Branch } from "./branch.ts";
import { Cancellation, Cancelled } from "./cancellation.ts";
import { type Payload, parsePayload, toPayload } from "./json-value.ts";
import type { ParallelState, StateScope } from "./machine.ts";
import { branchBelow } from "./progress.ts";
import { runRetrying } from "./retrying.ts";
import { evaluate, finish, type Outcome, type StateEntry } from "./state-entry.ts";
import { StateError } from "./state-error.ts";

type ParallelEntry = StateEntry & { readonly state: ParallelState };

export function runParallel(entry: ParallelEntry): Promise<Outcome> {
  const { branch, state } = entry;
  return runRetrying(entry, async ({ number, retryCount }) => {
    const input =
      state.arguments === undefined
        ? entry.input
        : toPayload(await evaluate(entry, state.arguments, { retryCount }));
    const { history } = branch.execution;
    const started = history.add("ParallelStateStarted", branch.last);
    branch.last = started;
    const result = await runBranches(entry, input, number, started);
    history.add("ParallelStateSucceeded", branch.last);
    return finish(entry, state, result, { result: result.value, retryCount });
  });
}

async function runBranches(
  { branch: outer, state, step }: ParallelEntry,
  input: Payload,
  attempt: number,
  started: number,
): Promise<Payload> {
  const cancellation = Cancellation.below(outer.cancellation);
  const branches = state.branches.map(
    (_, index) =>
      new Branch({
        execution: outer.execution,
        progress: branchBelow(outer.progress, step, attempt, index),
        cancellation,
        outer,
        last: started,
      }),
  );
  outer.inner = branches;
  let failed: { readonly error: unknown } | undefined;
  const runs = state.branches.map(async (scope, index) => {
    try {
      return await runBranch(scope, input, branches[index]);
    } catch (error) {
      if (failed === undefined && !(error instanceof Cancelled)) {
        failed = { error };
        if (error instanceof StateError) {
          outer.recordInnerAbort(branches[index].last);
          outer.last = branches[index].last;
        }
        cancellation.cancel();
      }
      return undefined;
    }
  });
  const outputs = await Promise.all(runs);
  cancellation.release();
  outer.inner = [];
  if (failed !== undefined) throw failed.error;
  outer.cancellation.check();
  outer.last = Math.max(...branches.map(({ last }) => last));
  return toPayload(outputs.map(output => output?.value ?? null));
}

/** Takes the recorded output of a branch that had finished before a restart. */
async function runBranch(scope: StateScope, input: Payload, branch: Branch): Promise<Payload> {
  const { execution, progress } = branch;
  if (progress.done?.output !== undefined) {
    branch.last = progress.done.last;
    return parsePayload(progress.done.output);
  }
  const { clock, runStates } = execution.runtime;
  const startMs = clock.now();
  const output = await runStates(scope, input, branch);
  execution.record(progress, {
    kind: "done",
    path: progress.path,
    output: output.text,
    startMs,
    stopMs: clock.now(),
    last: branch.last,
  });
  return output;
}
