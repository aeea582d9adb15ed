// Runs a Task state: schedules the task, waits for its result, its time-out or the end of the branch, whichever comes
// first, and writes to the history which one it was.
import { InputError } from "../failure/errors.ts";
import { deriveSeed } from "../random/seed.ts";
import { Cancellation, Cancelled } from "./cancellation.ts";
import { sleepUntil } from "./clock.ts";
import type { TaskContext, TaskRequest } from "./executor.ts";
import { exceedsBytes, isJsonObject, type Json, type Payload, toPayload } from "./json-value.ts";
import type { TaskState } from "./machine.ts";
import { actionName, executorKey } from "./resource.ts";
import { type Attempt, runRetrying } from "./retrying.ts";
import {
  dataLimitExceeded,
  evaluate,
  evaluateNumber,
  finish,
  type Outcome,
  type StateEntry,
} from "./state-entry.ts";
import { StateError } from "./state-error.ts";

type TaskEntry = StateEntry & { readonly state: TaskState };

export function runTask(entry: TaskEntry): Promise<Outcome> {
  const { state } = entry;
  return runRetrying(entry, async attempt => {
    const result = await runAttempt(entry, attempt);
    return finish(entry, state, result, { result: result.value, retryCount: attempt.retryCount });
  });
}

/** @throws StateError when the task fails or times out */
async function runAttempt(entry: TaskEntry, { number, retryCount }: Attempt): Promise<Payload> {
  const { branch, state } = entry;
  const { source, runtime } = branch.execution;
  const given =
    state.arguments === undefined
      ? entry.input
      : toPayload(await evaluate(entry, state.arguments, { retryCount }));
  if (exceedsBytes(given.text, runtime.limits.payloadBytes)) throw dataLimitExceeded(state.name);
  const timeoutSeconds =
    state.timeoutSeconds &&
    (await evaluateNumber(entry, state.timeoutSeconds, "TimeoutSeconds", { retryCount, min: 1 }));
  const request: TaskRequest = {
    resource: state.resource,
    arguments: isJsonObject(given.value) ? given.value : {},
    executionArn: source.arn,
    state: state.name,
    requestId: deriveSeed(source.arn, branch.progress.path, entry.step, number),
    attempt: retryCount + 1,
    item: itemOf(branch.progress.path),
  };
  return perform(entry, request, given, timeoutSeconds);
}

/** A child of a Distributed Map knows its index from its path only. */
function itemOf(path: string): number | undefined {
  const index = /\.(\d+)$/.exec(path)?.[1];
  return index === undefined ? undefined : Number(index);
}

async function perform(
  entry: TaskEntry,
  request: TaskRequest,
  given: Payload,
  timeoutSeconds: number | undefined,
): Promise<Payload> {
  const { branch } = entry;
  const { runtime } = branch.execution;
  const events = taskEvents(entry, given, timeoutSeconds);
  events.start();
  const startMs = runtime.clock.now();

  return new Promise<Payload>((resolve, reject) => {
    const abort = new AbortController();
    const stop = new Cancellation();
    let isOver = false;
    let isSubmitted = false;
    const end = (finishUp: () => void) => {
      if (isOver) return;
      isOver = true;
      timeout?.cancel();
      leave();
      try {
        finishUp();
      } catch (error) {
        reject(error);
      }
    };
    const endStopping = (finishUp: () => void) =>
      end(() => {
        stop.cancel();
        abort.abort();
        finishUp();
      });
    const fail = (error: StateError) =>
      end(() => {
        events.fail(error, isSubmitted);
        reject(error);
      });
    const succeed = (output: Payload) => {
      if (exceedsBytes(output.text, runtime.limits.payloadBytes)) {
        fail(dataLimitExceeded(request.resource.service));
        return;
      }
      end(() => {
        events.succeed(output);
        resolve(output);
      });
    };
    const timeOut = () =>
      endStopping(() => {
        const error = new StateError("States.Timeout");
        events.timeOut(error);
        reject(error);
      });
    const leave = branch.cancellation.onCancel(() => endStopping(() => reject(new Cancelled("cancelled"))));
    if (isOver) return;
    const timeout =
      timeoutSeconds === undefined ? undefined : runtime.clock.at(startMs + 1000 * timeoutSeconds, timeOut);
    const submitted = (response: Json) => {
      if (isOver || isSubmitted) return;
      isSubmitted = true;
      events.submit(toPayload(response));
    };
    const work = call(request, entry, stop, abort.signal, submitted)
      .then(response => succeed(toPayload(response)))
      .catch((error: unknown) => {
        if (error instanceof StateError) fail(error);
        else end(() => reject(error));
      });
    runtime.track(work);
  });
}

/** Calls the executor, and lets a virtual clock jump only while the executor waits on that clock. */
async function call(
  request: TaskRequest,
  { branch, state }: TaskEntry,
  stop: Cancellation,
  signal: AbortSignal,
  submitted: (response: Json) => void,
): Promise<Json> {
  const { clock, executors } = branch.execution.runtime;
  const executor = executors[executorKey(request.resource)];
  if (executor === undefined)
    throw new InputError({
      what: "no executor",
      where: `state "${state.name}"`,
      expected: `expected one for ${executorKey(request.resource)}; there are ${Object.keys(executors).join(", ") || "none"}`,
    });
  let release = clock.hold();
  let hasAnswered = false;
  const idle = async <T>(promise: Promise<T>): Promise<T> => {
    release();
    try {
      return await promise;
    } finally {
      if (!hasAnswered) release = clock.hold();
    }
  };
  const context: TaskContext = {
    signal,
    now: () => clock.now(),
    sleep: ms => idle(sleepUntil(clock, clock.now() + ms, stop)),
    idle,
    submitted,
  };
  try {
    return await executor(request, context);
  } finally {
    hasAnswered = true;
    release();
  }
}

function taskEvents({ branch, state }: TaskEntry, given: Payload, timeoutInSeconds: number | undefined) {
  const { history, runtime } = branch.execution;
  const { resource } = state;
  const named = { resource: actionName(resource), resourceType: resource.service };
  const add = (type: string, details: object) => {
    branch.last = history.add(type, branch.last, { ...named, ...details });
  };
  const whole = (output: Payload) => ({ output: output.text, outputDetails: { truncated: false } });
  return {
    start() {
      add("TaskScheduled", { region: runtime.region, parameters: given.text, timeoutInSeconds });
      add("TaskStarted", {});
    },
    submit: (response: Payload) => add("TaskSubmitted", whole(response)),
    succeed: (output: Payload) => add("TaskSucceeded", whole(output)),
    fail: (error: StateError, isSubmitted: boolean) =>
      add(resource.pattern === "request" || isSubmitted ? "TaskFailed" : "TaskSubmitFailed", error.details),
    timeOut: (error: StateError) => add("TaskTimedOut", error.details),
  };
}
