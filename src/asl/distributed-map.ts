// Runs a Distributed Map: every item is an execution of its own, with its own history, below a Map Run. Finished items
// stay finished over a restart.
import pLimit from "p-limit";
import { deriveSeed } from "../random/seed.ts";
import { Cancellation } from "./cancellation.ts";
import { type ChildResult, shownResult } from "./child-result.ts";
import { holding } from "./clock.ts";
import { Execution } from "./execution.ts";
import { readItems } from "./item-reader.ts";
import { type Json, type Payload, parsePayload, toPayload } from "./json-value.ts";
import { formatUuid } from "./jsonata-functions.ts";
import type { MapState } from "./machine.ts";
import { branchBelow } from "./progress.ts";
import { writeResults } from "./result-writer.ts";
import { evaluate, evaluateNumber, type StateEntry } from "./state-entry.ts";
import { StateError } from "./state-error.ts";

type MapEntry = StateEntry & { readonly state: MapState };

interface Settings {
  readonly concurrency: number;
  readonly toleratedCount: number | undefined;
  readonly toleratedPercentage: number | undefined;
  readonly readerPlace: Json;
  readonly writerPlace: Json | undefined;
}

/** A try of a Map Run under way. */
interface MapRun {
  readonly arn: string;
  readonly attempt: number;
  readonly items: readonly Json[];
  /** Id of its MapRunStarted event. */
  readonly started: number;
}

/**
 * @param items undefined when the state has an ItemReader
 * @returns the results in the order of the items, or where the ResultWriter put them
 * @throws StateError States.ItemReaderFailed, States.ExceedToleratedFailureThreshold, States.ResultWriterFailed,
 *   States.QueryEvaluationError
 */
export async function runDistributed(
  entry: MapEntry,
  items: readonly Json[] | undefined,
  attempt: number,
): Promise<Payload> {
  const { branch } = entry;
  const { history, runtime } = branch.execution;
  const settings = await evaluateSettings(entry);
  const run = await openMapRun(entry, items, attempt, settings);
  try {
    const children = run.items.map((_, index) => pendingChild(entry, run.arn, index));
    const failure = await runChildren(entry, run, settings, children);
    const { writerPlace } = settings;
    const output =
      writerPlace === undefined
        ? children.map(shownResult)
        : await holding(runtime.clock, () => writeResults(writerPlace, run.arn, children, runtime.bucket));
    if (failure !== undefined) throw failure;
    // Recorded on AWS: the events after the run point to its start.
    branch.last = run.started;
    const ended = history.add("MapRunSucceeded", run.started);
    history.add("MapStateSucceeded", ended);
    return toPayload(output);
  } catch (error) {
    if (error instanceof StateError)
      branch.last = history.add("MapRunFailed", Math.max(run.started, branch.last), error.details);
    throw error;
  }
}

async function evaluateSettings(entry: MapEntry): Promise<Settings> {
  const { state, branch } = entry;
  const { distributedConcurrency } = branch.execution.runtime.limits;
  const wanted =
    state.maxConcurrency && (await evaluateNumber(entry, state.maxConcurrency, "MaxConcurrency"));
  return {
    concurrency: Math.min(wanted || distributedConcurrency, distributedConcurrency),
    toleratedCount:
      state.toleratedFailureCount &&
      (await evaluateNumber(entry, state.toleratedFailureCount, "ToleratedFailureCount")),
    toleratedPercentage:
      state.toleratedFailurePercentage &&
      (await evaluateNumber(entry, state.toleratedFailurePercentage, "ToleratedFailurePercentage", {
        isWhole: false,
        max: 100,
      })),
    readerPlace: state.readerArguments === undefined ? null : await evaluate(entry, state.readerArguments),
    writerPlace: state.writerArguments && (await evaluate(entry, state.writerArguments)),
  };
}

/** A run that was under way before a restart keeps its ARN and its items, whatever S3 holds by now. */
async function openMapRun(
  { branch, state, step }: MapEntry,
  given: readonly Json[] | undefined,
  attempt: number,
  { readerPlace }: Settings,
): Promise<MapRun> {
  const { execution, progress } = branch;
  const { history, runtime, source } = execution;
  const known = progress.entry?.mapRun;
  if (known?.attempt === attempt) {
    branch.last = known.last;
    return { arn: known.arn, attempt, started: known.last, items: known.items };
  }
  branch.last = history.add("MapStateStarted", branch.last, { length: given?.length ?? 0 });
  const uuid = formatUuid(deriveSeed(runtime.seed, source.arn, progress.path, step, attempt, "map run"));
  const arn = `arn:aws:states:${runtime.region}:${runtime.account}:mapRun:${source.machineName}/${state.label}:${uuid}`;
  const started = history.add("MapRunStarted", branch.last, { mapRunArn: arn });
  branch.last = started;
  let items: readonly Json[];
  try {
    items = given ?? (await readItems(readerPlace, runtime));
  } catch (error) {
    if (error instanceof StateError) branch.last = history.add("MapRunFailed", started, error.details);
    throw error;
  }
  execution.record(progress, {
    kind: "map-run",
    path: progress.path,
    step,
    attempt,
    arn,
    items: [...items],
    last: started,
  });
  return { arn, attempt, started, items };
}

/**
 * Runs the children and replaces those that have ended in `children`, which are in the order of the items.
 *
 * @returns States.ExceedToleratedFailureThreshold when too many failed
 */
async function runChildren(
  entry: MapEntry,
  { items, attempt }: MapRun,
  settings: Settings,
  children: ChildResult[],
): Promise<StateError | undefined> {
  const { branch } = entry;
  const cancellation = Cancellation.below(branch.cancellation);
  const running = new Set<Execution>();
  let failedCount = 0;
  let failure: StateError | undefined;
  let broken: { readonly error: unknown } | undefined;
  const stop = () => {
    for (const child of running) child.abort(new StateError(undefined));
    cancellation.cancel();
  };
  const run = async (index: number): Promise<void> => {
    if (cancellation.isCancelled) return;
    try {
      const item = { index, value: items[index] };
      children[index] = await runChild(entry, attempt, item, children[index], cancellation, running);
      if (children[index].status === "SUCCEEDED" || cancellation.isCancelled) return;
      failedCount++;
      if (isTolerated(failedCount, items.length, settings)) return;
      failure = new StateError(
        "States.ExceedToleratedFailureThreshold",
        "The specified tolerated failure threshold was exceeded",
      );
      stop();
    } catch (error) {
      if (cancellation.isCancelled) return;
      broken ??= { error };
      stop();
    }
  };
  const limit = pLimit(settings.concurrency);
  await Promise.all(items.map((_, index) => limit(run, index)));
  cancellation.release();
  if (broken !== undefined) throw broken.error;
  branch.cancellation.check();
  return failure;
}

/**
 * Each limit that is given counts by itself; without a limit, no failure is tolerated.
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
  entry: MapEntry,
  attempt: number,
  item: { readonly index: number; readonly value: Json },
  pending: ChildResult,
  cancellation: Cancellation,
  running: Set<Execution>,
): Promise<ChildResult> {
  const { branch, state, step } = entry;
  const { execution: parent } = branch;
  const { clock, children } = parent.runtime;
  const progress = branchBelow(branch.progress, step, attempt, item.index);
  const input = toPayload(
    state.itemSelector === undefined ? item.value : await evaluate(entry, state.itemSelector, { item }),
  );
  const known = progress.done;
  if (known !== undefined)
    return {
      ...pending,
      input,
      status: known.failed === undefined ? "SUCCEEDED" : "FAILED",
      output: known.output === undefined ? undefined : parsePayload(known.output),
      error: known.failed && new StateError(known.failed.error, known.failed.cause),
      startMs: known.startMs,
      stopMs: known.stopMs,
    };
  const [first] = parent.recorder.eventsOf(progress.path);
  const startMs = first === undefined ? clock.now() : Date.parse(first.timestamp);
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
    },
    parent.runtime,
    parent.recorder,
    cancellation,
  );
  children.set(child.source.arn, child);
  // A runner may have been killed between a child's last event and the record of its end.
  if (!child.restoreEnd()) {
    running.add(child);
    try {
      await child.run();
    } finally {
      running.delete(child);
    }
  }
  // The child ends with its parent. When only the runner closes, both stay open.
  if (child.status === "RUNNING" && parent.status !== "RUNNING") child.abort(new StateError(undefined));
  if (child.status === "RUNNING") return { ...pending, input };
  const stopMs = child.stopMs ?? clock.now();
  const { status, output, error } = child;
  if (status !== "ABORTED")
    parent.record(progress, {
      kind: "done",
      path: progress.path,
      output: output?.text,
      failed: error?.details,
      startMs,
      stopMs,
      last: child.history.events.length,
    });
  return { ...pending, input, status, output, error, startMs, stopMs };
}

function pendingChild({ branch, state }: MapEntry, mapRunArn: string, index: number): ChildResult {
  const { source, runtime } = branch.execution;
  const name = formatUuid(deriveSeed(mapRunArn, index));
  const place = `arn:aws:states:${runtime.region}:${runtime.account}`;
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
  };
}
