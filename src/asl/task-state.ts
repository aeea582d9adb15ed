// Task: schedule, start, wait for the result, the token, the time-out, whichever comes first, and write down which.

import { InputError } from "../failure/errors.ts";
import { deriveSeed } from "../random/seed.ts";
import { Cancellation, Cancelled } from "./cancellation.ts";
import type { TaskContext, TaskRequest } from "./executor.ts";
import { exceedsBytes, isJsonObject, type Json, type Payload, toPayload } from "./json-value.ts";
import type { TaskState } from "./machine.ts";
import { actionName, executorKey, type Resource } from "./resource.ts";
import { type Attempt, runRetrying } from "./retrying.ts";
import { sleepUntil } from "./sleep.ts";
import { StateError } from "./state-error.ts";
import { dataLimitExceeded, evaluate, evaluateNumber, finish, type Outcome, type Visit } from "./visit.ts";

type TaskVisit = Visit & { readonly state: TaskState };

interface Times {
  readonly timeoutSeconds: number | undefined;
  readonly heartbeatSeconds: number | undefined;
}

export function runTask(visit: TaskVisit): Promise<Outcome> {
  const { state } = visit;
  return runRetrying(visit, async attempt => {
    const result = await runAttempt(visit, attempt);
    return finish(visit, state, result, { result: result.value, retryCount: attempt.retryCount });
  });
}

/** @throws StateError when the task fails or times out */
async function runAttempt(visit: TaskVisit, attempt: Attempt): Promise<Payload> {
  const { thread, state } = visit;
  const { source, world } = thread.execution;
  const requestId = deriveSeed(source.arn, thread.progress.path, visit.step, attempt.number);
  const taskToken =
    state.resource.pattern === "waitForTaskToken"
      ? `${requestId}${deriveSeed(requestId, "token")}`
      : undefined;
  const seen = { retryCount: attempt.retryCount, taskToken };
  const given =
    state.arguments === undefined ? visit.input : toPayload(await evaluate(visit, state.arguments, seen));
  if (exceedsBytes(given.text, world.limits.payloadBytes)) throw dataLimitExceeded(state.name);
  const times: Times = {
    timeoutSeconds:
      state.timeoutSeconds &&
      (await evaluateNumber(visit, state.timeoutSeconds, "TimeoutSeconds", { ...seen, min: 1 })),
    heartbeatSeconds:
      state.heartbeatSeconds &&
      (await evaluateNumber(visit, state.heartbeatSeconds, "HeartbeatSeconds", { ...seen, min: 1 })),
  };
  const request: TaskRequest = {
    resource: state.resource,
    arguments: requestArguments(state.resource, given.value),
    executionArn: source.arn,
    state: state.name,
    requestId,
    attempt: attempt.retryCount + 1,
    item: thread.item?.index ?? itemOf(thread.progress.path),
  };
  return perform(visit, attempt, request, given, times, taskToken);
}

/** A child of a Distributed Map knows its index from its place only. */
function itemOf(path: string): number | undefined {
  const index = /\.(\d+)$/.exec(path)?.[1];
  return index === undefined ? undefined : Number(index);
}

/** A Task whose resource is a function is an invocation of it. */
function requestArguments({ functionArn }: Resource, given: Json): TaskRequest["arguments"] {
  if (functionArn !== undefined) return { FunctionName: functionArn, Payload: given };
  return isJsonObject(given) ? given : {};
}

async function perform(
  visit: TaskVisit,
  attempt: Attempt,
  request: TaskRequest,
  given: Payload,
  times: Times,
  taskToken: string | undefined,
): Promise<Payload> {
  const { thread, step } = visit;
  const { execution } = thread;
  const { world } = execution;
  const events = taskEvents(visit, given, times);
  // After a restart a token may still be with a worker: it is waited for, and the task is not started twice.
  const known = thread.progress.visit?.submitted;
  const submitted = known?.attempt === attempt.number && taskToken !== undefined ? known : undefined;
  if (submitted === undefined) events.start();
  else thread.last = Math.max(thread.last, submitted.last);
  const startMs = submitted?.timeMs ?? world.clock.now();

  return new Promise<Payload>((resolve, reject) => {
    const abort = new AbortController();
    const stop = new Cancellation();
    let isOver = false;
    let isSubmitted = submitted !== undefined;
    let early: (() => void) | undefined;
    const end = (finishUp: () => void) => {
      if (isOver) return;
      isOver = true;
      timeout?.cancel();
      heartbeat?.cancel();
      leave();
      if (taskToken !== undefined) world.tokens.close(taskToken);
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
    const succeed = (output: Payload) =>
      end(() => {
        if (exceedsBytes(output.text, world.limits.payloadBytes)) {
          const error = dataLimitExceeded(request.resource.functionArn ?? request.resource.service);
          events.fail(error, isSubmitted);
          reject(error);
          return;
        }
        events.succeed(output);
        resolve(output);
      });
    const fail = (error: StateError) =>
      end(() => {
        events.fail(error, isSubmitted);
        reject(error);
      });
    const timeOut = (errorName: "States.Timeout" | "States.HeartbeatTimeout") =>
      endStopping(() => {
        const error = new StateError(errorName);
        events.timeOut(error);
        reject(error);
      });
    const leave = thread.cancellation.onCancel(() => endStopping(() => reject(new Cancelled("cancelled"))));
    if (isOver) return;
    const timeout =
      times.timeoutSeconds === undefined
        ? undefined
        : world.clock.at(startMs + 1000 * times.timeoutSeconds, () => timeOut("States.Timeout"));
    let heartbeat = nextBeat();

    // Only who holds a token can send a heartbeat; elsewhere Step Functions takes the field and ignores it.
    function nextBeat() {
      if (times.heartbeatSeconds === undefined || taskToken === undefined) return undefined;
      return world.clock.at(world.clock.now() + 1000 * times.heartbeatSeconds, () =>
        timeOut("States.HeartbeatTimeout"),
      );
    }
    const markSubmitted = (response: Json) => {
      if (isOver || isSubmitted) return;
      isSubmitted = true;
      events.submit(toPayload(response));
      early?.();
    };
    if (taskToken !== undefined) {
      // A worker may answer before the call that started it has returned.
      const whenSubmitted = (act: () => void) => {
        if (isSubmitted) act();
        else early ??= act;
      };
      world.tokens.open(taskToken, {
        succeed: output => whenSubmitted(() => succeed(output)),
        fail: error => whenSubmitted(() => fail(error)),
        beat: () => {
          heartbeat?.cancel();
          heartbeat = nextBeat();
        },
      });
    }
    if (submitted !== undefined) return;
    const answered = (response: Json) => {
      if (taskToken === undefined) {
        succeed(toPayload(bare(request.resource, response)));
        return;
      }
      if (!isOver)
        execution.record(thread.progress, {
          kind: "submitted",
          path: thread.progress.path,
          step,
          attempt: attempt.number,
          timeMs: startMs,
          last: thread.last + 1,
        });
      markSubmitted(response);
    };
    const work = call(request, visit, stop, abort, markSubmitted)
      .then(answered)
      .catch((error: unknown) => {
        if (error instanceof StateError) fail(error);
        else end(() => reject(error));
      });
    world.track(work);
  });
}

/** Calls the executor, unless a fault comes first, and lets the clock run only while it waits on the clock. */
async function call(
  request: TaskRequest,
  { thread, state }: TaskVisit,
  stop: Cancellation,
  abort: AbortController,
  submitted: (response: Json) => void,
): Promise<Json> {
  const { clock, closing, executors, faults, track } = thread.execution.world;
  const fault = faults(request);
  if (fault !== undefined) throw fault;
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
    signal: abort.signal,
    now: () => clock.now(),
    sleep: ms => idle(sleepUntil(clock, clock.now() + ms, stop)),
    idle,
    submitted,
    detach(work) {
      const leave = closing.onCancel(() => {
        stop.cancel();
        abort.abort();
      });
      track(work);
      work.then(leave, leave);
    },
  };
  try {
    return await executor(request, context);
  } finally {
    hasAnswered = true;
    release();
  }
}

/** The output of a Task whose resource is a function is what the function returned. */
function bare({ functionArn }: Resource, response: Json): Json {
  return functionArn !== undefined && isJsonObject(response) ? (response.Payload ?? null) : response;
}

function taskEvents({ thread, state }: TaskVisit, given: Payload, times: Times) {
  const { history, world } = thread.execution;
  const { resource } = state;
  const add = (type: string, details?: object) => {
    thread.last = history.add(type, thread.last, details);
  };
  const seconds = {
    ...(times.timeoutSeconds !== undefined && { timeoutInSeconds: times.timeoutSeconds }),
  };
  const whole = { truncated: false };
  if (resource.functionArn !== undefined)
    return {
      start() {
        add("LambdaFunctionScheduled", {
          input: given.text,
          inputDetails: whole,
          resource: resource.functionArn,
          ...seconds,
        });
        add("LambdaFunctionStarted");
      },
      submit() {},
      succeed: (output: Payload) =>
        add("LambdaFunctionSucceeded", { output: output.text, outputDetails: whole }),
      fail: (error: StateError) => add("LambdaFunctionFailed", error.details),
      timeOut: (error: StateError) => add("LambdaFunctionTimedOut", error.details),
    };
  const named = { resource: actionName(resource), resourceType: resource.service };
  const beats = times.heartbeatSeconds === undefined ? {} : { heartbeatInSeconds: times.heartbeatSeconds };
  return {
    start() {
      add("TaskScheduled", { ...named, region: world.region, parameters: given.text, ...seconds, ...beats });
      add("TaskStarted", named);
    },
    submit: (response: Payload) =>
      add("TaskSubmitted", { ...named, output: response.text, outputDetails: whole }),
    succeed: (output: Payload) =>
      add("TaskSucceeded", { ...named, output: output.text, outputDetails: whole }),
    fail: (error: StateError, isSubmitted: boolean) =>
      add(resource.pattern === "request" || isSubmitted ? "TaskFailed" : "TaskSubmitFailed", {
        ...named,
        ...error.details,
      }),
    timeOut: (error: StateError) => add("TaskTimedOut", { ...named, ...error.details }),
  };
}
