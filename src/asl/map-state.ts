// Map: the items, and an inline iteration for each. A Distributed Map starts children instead (distributed-map.ts).
import { Cancellation, Cancelled } from "./cancellation.ts";
import { runDistributed } from "./distributed-map.ts";
import { type Json, type Payload, parsePayload, toPayload } from "./json-value.ts";
import type { MapState } from "./machine.ts";
import { runPool } from "./pool.ts";
import { threadBelow } from "./progress.ts";
import { runRetrying } from "./retrying.ts";
import { StateError } from "./state-error.ts";
import { Thread } from "./thread.ts";
import { EvaluationError, unexpectedType } from "./value-template.ts";
import { evaluate, evaluateNumber, evaluationFailed, finish, type Outcome, type Visit } from "./visit.ts";

type MapVisit = Visit & { readonly state: MapState };

export function runMap(visit: MapVisit): Promise<Outcome> {
  const { state } = visit;
  return runRetrying(visit, async ({ number, retryCount }) => {
    const items = state.itemReader === undefined ? await evaluateItems(visit) : undefined;
    const result = state.isDistributed
      ? await runDistributed(visit, items, number)
      : await runInline(visit, items ?? [], number);
    return finish(visit, state, result, { result: result.value, retryCount });
  });
}

async function evaluateItems(visit: MapVisit): Promise<readonly Json[]> {
  const { items } = visit.state;
  const value = items === undefined ? visit.input.value : await evaluate(visit, items);
  if (Array.isArray(value)) return value as readonly Json[];
  throw evaluationFailed(
    visit,
    items === undefined
      ? new EvaluationError(`Map state input must be an array but was: ${JSON.stringify(value)}`, undefined)
      : unexpectedType(items, "Items", "array", value),
  );
}

async function runInline(visit: MapVisit, items: readonly Json[], attempt: number): Promise<Payload> {
  const { thread, state, step } = visit;
  const { execution } = thread;
  const { history, world } = execution;
  const wanted =
    state.maxConcurrency === undefined
      ? 0
      : await evaluateNumber(visit, state.maxConcurrency, "MaxConcurrency");
  const concurrency = Math.min(
    wanted === 0 ? Number.POSITIVE_INFINITY : wanted,
    world.limits.inlineConcurrency,
  );
  // Evaluated for its errors: an inline Map tolerates nothing, whatever it says.
  if (state.toleratedFailureCount !== undefined)
    await evaluateNumber(visit, state.toleratedFailureCount, "ToleratedFailureCount");
  if (state.toleratedFailurePercentage !== undefined)
    await evaluateNumber(visit, state.toleratedFailurePercentage, "ToleratedFailurePercentage", {
      isWhole: false,
      max: 100,
    });
  const started = history.add("MapStateStarted", thread.last, { length: items.length });
  thread.last = started;

  const cancellation = Cancellation.below(thread.cancellation);
  const outputs: (Json | undefined)[] = new Array(items.length);
  /** The newest event of the iteration whose end freed the place for the next. */
  const freedBy: number[] = [];
  const open = (index: number) => {
    const item = { index, value: items[index] };
    const iteration = new Thread({
      execution,
      progress: threadBelow(thread.progress, step, attempt, index),
      cancellation,
      item,
      outer: thread,
      last: freedBy.shift() ?? started,
    });
    const known = iteration.progress.done;
    if (known?.output !== undefined) return { iteration, known: known.output };
    const event = { index, name: state.name };
    iteration.last = history.add("MapIterationStarted", iteration.last, event);
    thread.inner.set(iteration, previous => history.add("MapIterationAborted", previous, event));
    return { iteration, known: undefined };
  };
  let failed: unknown;
  const run = async (index: number, { iteration, known }: ReturnType<typeof open>): Promise<void> => {
    const event = { index, name: state.name };
    if (known !== undefined) {
      outputs[index] = parsePayload(known).value;
      return;
    }
    try {
      const startMs = world.clock.now();
      const output = await world.runStates(state.processor, await itemInput(visit, iteration), iteration);
      thread.inner.delete(iteration);
      freedBy.push(iteration.last);
      thread.last = history.add("MapIterationSucceeded", iteration.last, event);
      execution.record(iteration.progress, {
        kind: "done",
        path: iteration.progress.path,
        output: output.text,
        startMs,
        stopMs: world.clock.now(),
        last: iteration.last,
      });
      outputs[index] = output.value;
    } catch (error) {
      if (failed !== undefined || error instanceof Cancelled) return;
      failed = error;
      if (error instanceof StateError) {
        thread.inner.delete(iteration);
        thread.last = iteration.last;
        history.add("MapIterationFailed", iteration.last, event);
        iteration.recordAbort(iteration.last);
        thread.recordInnerAbort(iteration.last);
      }
      cancellation.cancel();
    }
  };
  await runPool(items.length, concurrency, cancellation, { open, run });
  cancellation.release();
  thread.inner.clear();
  if (failed !== undefined) throw failed;
  thread.cancellation.check();
  history.add("MapStateSucceeded", thread.last);
  return toPayload(outputs.map(output => output ?? null));
}

/** What the first state of an iteration gets. */
async function itemInput(visit: MapVisit, iteration: Pick<Thread, "item">): Promise<Payload> {
  const { itemSelector } = visit.state;
  const { item } = iteration;
  if (itemSelector === undefined) return toPayload(item?.value ?? null);
  return toPayload(await evaluate(visit, itemSelector, { item }));
}
