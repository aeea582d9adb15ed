// A Distributed Map: every item is an execution of its own, with its own history, below a Map Run. Items that are done
// stay done over a restart and a redrive.
import { deriveSeed } from "../random/seed.ts";
import { Cancellation } from "./cancellation.ts";
import { type ChildResult, transformChild } from "./child-result.ts";
import { holding } from "./clock.ts";
import { Execution } from "./execution.ts";
import { readItems } from "./item-reader.ts";
import { type Json, type Payload, parsePayload, toPayload } from "./json-value.ts";
import { formatUuid } from "./jsonata-functions.ts";
import type { MapState } from "./machine.ts";
import type { MapRunCounts } from "./map-runs.ts";
import { runPool } from "./pool.ts";
import { threadBelow } from "./progress.ts";
import { writeResults } from "./result-writer.ts";
import { StateError } from "./state-error.ts";
import { evaluate, evaluateNumber, type Visit } from "./visit.ts";

type MapVisit = Visit & { readonly state: MapState };

interface Settings {
  readonly concurrency: number;
  readonly toleratedCount: number | undefined;
  readonly toleratedPercentage: number | undefined;
  readonly readerPlace: Json;
  readonly maxItems: number;
  readonly writerPlace: Json | undefined;
}

/**
 * @param items undefined when the state has an ItemReader
 * @throws StateError States.ItemReaderFailed, States.ExceedToleratedFailureThreshold, States.ResultWriterFailed,
 *   States.QueryEvaluationError
 */
export async function runDistributed(
  visit: MapVisit,
  items: readonly Json[] | undefined,
  attempt: number,
): Promise<Payload> {
  const { thread, state } = visit;
  const { history, world } = thread.execution;
  const settings = await evaluateSettings(visit);
  const { arn, started, list } = await openMapRun(visit, items, attempt, settings);
  const fail = (error: StateError): StateError => {
    thread.last = history.add("MapRunFailed", Math.max(started, thread.last), error.details);
    return error;
  };
  let failure: StateError | undefined;
  const children: ChildResult[] = [];
  try {
    failure = await runChildren(visit, list, attempt, arn, settings, children);
    const output =
      settings.writerPlace === undefined
        ? children.flatMap(child => transformChild(child, state.resultWriter.transformation))
        : await holding(world.clock, () =>
            writeResults(state.resultWriter, settings.writerPlace ?? null, arn, children, world.bucket),
          );
    if (failure !== undefined) throw failure;
    // Recorded on AWS: the events after the run point to its start.
    thread.last = started;
    const ended = history.add("MapRunSucceeded", started);
    history.add("MapStateSucceeded", ended);
    return toPayload(output);
  } catch (error) {
    throw error instanceof StateError ? fail(error) : error;
  }
}

async function evaluateSettings(visit: MapVisit): Promise<Settings> {
  const { state, thread } = visit;
  const { distributedConcurrency } = thread.execution.world.limits;
  const wanted =
    state.maxConcurrency === undefined
      ? 0
      : await evaluateNumber(visit, state.maxConcurrency, "MaxConcurrency");
  const { itemReader: reader, resultWriter: writer } = state;
  return {
    concurrency: Math.min(wanted === 0 ? Number.POSITIVE_INFINITY : wanted, distributedConcurrency),
    toleratedCount:
      state.toleratedFailureCount &&
      (await evaluateNumber(visit, state.toleratedFailureCount, "ToleratedFailureCount")),
    toleratedPercentage:
      state.toleratedFailurePercentage &&
      (await evaluateNumber(visit, state.toleratedFailurePercentage, "ToleratedFailurePercentage", {
        isWhole: false,
        max: 100,
      })),
    readerPlace: reader === undefined ? null : await evaluate(visit, reader.arguments),
    maxItems:
      reader?.maxItems === undefined
        ? Number.POSITIVE_INFINITY
        : await evaluateNumber(visit, reader.maxItems, "ItemReader/ReaderConfig/MaxItems", { min: 1 }),
    writerPlace: writer.arguments && (await evaluate(visit, writer.arguments)),
  };
}

/** A run that was under way before a restart keeps its ARN and its items, whatever S3 holds by now. */
async function openMapRun(
  visit: MapVisit,
  items: readonly Json[] | undefined,
  attempt: number,
  { readerPlace, maxItems }: Settings,
): Promise<{ readonly arn: string; readonly started: number; readonly list: readonly Json[] }> {
  const { thread, state, step } = visit;
  const { execution, progress } = thread;
  const { history, world } = execution;
  const known = progress.visit?.mapRun;
  if (known?.attempt === attempt) {
    const isRedriven = history.events.at(-1)?.type === "ExecutionRedriven";
    const started = isRedriven
      ? history.add("MapRunRedriven", history.events.length, {
          mapRunArn: known.arn,
          redriveCount: execution.source.redriveCount,
        })
      : known.last;
    thread.last = started;
    return { arn: known.arn, started, list: known.items };
  }
  thread.last = history.add("MapStateStarted", thread.last, { length: items?.length ?? 0 });
  const uuid = formatUuid(
    deriveSeed(world.seed, execution.source.arn, progress.path, step, attempt, "map run"),
  );
  const arn = `arn:aws:states:${world.region}:${world.account}:mapRun:${execution.source.machineName}/${state.label}:${uuid}`;
  const started = history.add("MapRunStarted", thread.last, { mapRunArn: arn });
  thread.last = started;
  let list: readonly Json[];
  try {
    list =
      items ??
      (state.itemReader === undefined ? [] : await readItems(state.itemReader, readerPlace, maxItems, world));
  } catch (error) {
    if (error instanceof StateError) thread.last = history.add("MapRunFailed", started, error.details);
    throw error;
  }
  execution.record(progress, {
    kind: "map-run",
    path: progress.path,
    step,
    attempt,
    arn,
    items: [...list],
    last: started,
  });
  return { arn, started, list };
}

/**
 * Fills `children`, in the order of the items.
 *
 * @returns States.ExceedToleratedFailureThreshold when too many failed
 */
async function runChildren(
  visit: MapVisit,
  list: readonly Json[],
  attempt: number,
  mapRunArn: string,
  settings: Settings,
  children: ChildResult[],
): Promise<StateError | undefined> {
  const { thread, state } = visit;
  const { world, source } = thread.execution;
  const cancellation = Cancellation.below(thread.cancellation);
  const running = new Set<Execution>();
  let failedCount = 0;
  let failure: StateError | undefined;
  let broken: { readonly error: unknown } | undefined;
  const stop = () => {
    for (const child of running) child.abort(new StateError(undefined));
    cancellation.cancel();
  };
  for (const [index] of list.entries()) children[index] = pendingChild(visit, mapRunArn, index);
  const report = (status: "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED") => {
    const counts = countChildren(children, running.size, state.resultWriter.arguments !== undefined);
    world.mapRuns.set({
      mapRunArn,
      executionArn: source.arn,
      status,
      maxConcurrency: Number.isFinite(settings.concurrency) ? settings.concurrency : 0,
      toleratedFailureCount: settings.toleratedCount ?? 0,
      toleratedFailurePercentage: settings.toleratedPercentage ?? 0,
      redriveCount: source.redriveCount,
      itemCounts: counts,
      executionCounts: counts,
    });
  };
  report("RUNNING");
  const run = async (index: number): Promise<void> => {
    try {
      children[index] = await runChild(
        visit,
        list[index],
        index,
        attempt,
        children[index],
        cancellation,
        running,
      );
      if (children[index].status === "SUCCEEDED" || cancellation.isCancelled) return;
      failedCount++;
      if (!isTolerated(failedCount, list.length, settings)) {
        failure = new StateError(
          "States.ExceedToleratedFailureThreshold",
          "The specified tolerated failure threshold was exceeded",
        );
        stop();
      }
    } catch (error) {
      if (cancellation.isCancelled) return;
      broken ??= { error };
      stop();
    }
  };
  await runPool(list.length, settings.concurrency, cancellation, { open: () => {}, run });
  cancellation.release();
  if (broken !== undefined) throw broken.error;
  report(failure !== undefined ? "FAILED" : thread.cancellation.isCancelled ? "ABORTED" : "SUCCEEDED");
  thread.cancellation.check();
  return failure;
}

/**
 * Each limit that is given counts by itself; with none, nothing is tolerated.
 *
 * @param failed children that did not succeed so far
 */
function isTolerated(
  failed: number,
  total: number,
  { toleratedCount, toleratedPercentage }: Pick<Settings, "toleratedCount" | "toleratedPercentage">,
): boolean {
  if (toleratedCount === undefined && toleratedPercentage === undefined) return failed === 0;
  if (toleratedCount !== undefined && failed > toleratedCount) return false;
  return toleratedPercentage === undefined || 100 * failed <= toleratedPercentage * total;
}

async function runChild(
  visit: MapVisit,
  value: Json,
  index: number,
  attempt: number,
  pending: ChildResult,
  cancellation: Cancellation,
  running: Set<Execution>,
): Promise<ChildResult> {
  const { thread, state, step } = visit;
  const { execution: parent } = thread;
  const { clock } = parent.world;
  const progress = threadBelow(thread.progress, step, attempt, index);
  const input =
    state.itemSelector === undefined
      ? toPayload(value)
      : toPayload(await evaluate(visit, state.itemSelector, { item: { index, value } }));
  const known = progress.done;
  if (known !== undefined)
    return {
      ...pending,
      input,
      status: known.failed === undefined ? "SUCCEEDED" : "FAILED",
      output: known.output === undefined ? undefined : parsePayload(known.output),
      error: known.failed === undefined ? undefined : new StateError(known.failed.error, known.failed.cause),
      startMs: known.startMs,
      stopMs: known.stopMs,
    };
  const before = parent.recorder.eventsOf(progress.path);
  const isRedriven = ENDED.has(before.at(-1)?.type ?? "");
  const redriveCount =
    before.filter(({ type }) => type === "ExecutionRedriven").length + (isRedriven ? 1 : 0);
  const startMs = before.length === 0 ? clock.now() : Date.parse(before[0].timestamp);
  const child = new Execution(
    {
      arn: pending.executionArn,
      name: pending.name,
      machineArn: pending.machineArn,
      machineName: `${parent.source.machineName}/${state.label}`,
      scope: state.processor,
      timeoutSeconds: undefined,
      input,
      startMs,
      progress,
      redriveCount,
    },
    parent.world,
    parent.recorder,
    cancellation,
  );
  if (isRedriven) child.history.add("ExecutionRedriven", before.length, { redriveCount });
  parent.world.children.set(child.source.arn, child);
  running.add(child);
  try {
    await child.run();
  } finally {
    running.delete(child);
  }
  // The parent ended: so does the child. When only the runner closes, both stay open.
  if (child.status === "RUNNING" && parent.status !== "RUNNING") child.abort(new StateError(undefined));
  if (child.status === "RUNNING") return { ...pending, input };
  const stopMs = child.stopMs ?? clock.now();
  const { status, output, error } = child;
  if (status !== "ABORTED")
    parent.record(progress, {
      kind: "done",
      path: progress.path,
      ...(output !== undefined && { output: output.text }),
      ...(error !== undefined && { failed: error.details }),
      startMs,
      stopMs,
      last: child.history.events.length,
    });
  return { ...pending, input, status, output, error, startMs, stopMs, redriveCount };
}

const ENDED = new Set(["ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"]);

function pendingChild({ thread, state }: MapVisit, mapRunArn: string, index: number): ChildResult {
  const { source, world } = thread.execution;
  const name = formatUuid(deriveSeed(mapRunArn, index));
  const place = `arn:aws:states:${world.region}:${world.account}`;
  return {
    executionArn: `${place}:execution:${source.machineName}/${state.label}:${name}`,
    machineArn: `${place}:stateMachine:${source.machineName}/${state.label}`,
    name,
    status: "PENDING",
    input: undefined,
    output: undefined,
    error: undefined,
    startMs: undefined,
    stopMs: undefined,
    redriveCount: 0,
  };
}

function countChildren(children: readonly ChildResult[], running: number, isExported: boolean): MapRunCounts {
  const counts = { PENDING: 0, SUCCEEDED: 0, FAILED: 0, TIMED_OUT: 0, ABORTED: 0 };
  for (const { status } of children) counts[status]++;
  return {
    pending: counts.PENDING - running,
    running,
    succeeded: counts.SUCCEEDED,
    failed: counts.FAILED,
    timedOut: counts.TIMED_OUT,
    aborted: counts.ABORTED,
    total: children.length,
    resultsWritten: isExported ? counts.SUCCEEDED + counts.FAILED : counts.SUCCEEDED,
  };
}
