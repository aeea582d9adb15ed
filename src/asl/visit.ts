// One stay of a thread in a state: what expressions see there, and how what they yield is checked.

import { roleArn } from "./execution.ts";
import type { Json, Payload } from "./json-value.ts";
import { exceedsBytes, toPayload } from "./json-value.ts";
import type { Assignments, State } from "./machine.ts";
import { StateError } from "./state-error.ts";
import type { MapItem, Thread } from "./thread.ts";
import { EvaluationError, evaluateTemplate, type Template, unexpectedType } from "./value-template.ts";

/** Quota: all variables of an execution together. */
const MOST_VARIABLE_BYTES = 10 * 1024 * 1024;

export interface Visit {
  readonly thread: Thread;
  readonly state: State;
  /** Number of the state in its thread, from 0. */
  readonly step: number;
  readonly input: Payload;
  readonly entered: { readonly id: number; readonly previousEventId: number; readonly timeMs: number };
}

/** What an expression may see besides the input. */
export interface Extras {
  readonly result?: Json;
  readonly errorOutput?: Json;
  readonly retryCount?: number;
  readonly taskToken?: string;
  readonly item?: MapItem;
}

export interface Outcome {
  readonly output: Payload;
  readonly assigned: Readonly<Record<string, Json>> | undefined;
  readonly next: string | undefined;
}

/** @throws StateError States.QueryEvaluationError, after writing the event EvaluationFailed */
export async function evaluate(visit: Visit, template: Template, extras: Extras = {}): Promise<Json> {
  if (template.kind === "literal") return template.value;
  try {
    return await evaluateTemplate(template, bindings(visit, extras));
  } catch (error) {
    if (error instanceof EvaluationError) throw evaluationFailed(visit, error);
    throw error;
  }
}

/**
 * The number that a field holds.
 *
 * @throws StateError States.QueryEvaluationError when it is none, or not within the bounds
 */
export async function evaluateNumber(
  visit: Visit,
  template: Template,
  field: string,
  {
    isWhole = true,
    min = 0,
    max = 99_999_999,
    ...extras
  }: Extras & { readonly isWhole?: boolean; readonly min?: number; readonly max?: number } = {},
): Promise<number> {
  const value = await evaluate(visit, template, extras);
  if (typeof value !== "number")
    throw evaluationFailed(visit, unexpectedType(template, field, "number", value));
  if ((isWhole && !Number.isInteger(value)) || value < min || value > max)
    throw evaluationFailed(
      visit,
      new EvaluationError(
        `The field '${field}' must be ${isWhole ? "a whole number" : "a number"} from ${min} to ${max} but was: ${value}`,
        field,
      ),
    );
  return value;
}

export async function evaluateText(visit: Visit, template: Template, field: string): Promise<string> {
  const value = await evaluate(visit, template);
  if (typeof value !== "string")
    throw evaluationFailed(visit, unexpectedType(template, field, "string", value));
  return value;
}

export async function evaluateBoolean(visit: Visit, template: Template, field: string): Promise<boolean> {
  const value = await evaluate(visit, template);
  if (typeof value !== "boolean")
    throw evaluationFailed(visit, unexpectedType(template, field, "boolean", value));
  return value;
}

/**
 * Output and variables with which a state ends. Both see the variables as they were before.
 *
 * @param unchanged the output where none is declared
 * @throws StateError States.QueryEvaluationError, States.DataLimitExceeded
 */
export async function finish(
  visit: Visit,
  {
    output,
    assign,
    next,
  }: {
    readonly output: Template | undefined;
    readonly assign: Assignments;
    readonly next: string | undefined;
  },
  unchanged: Payload,
  extras: Extras = {},
): Promise<Outcome> {
  const payload = output === undefined ? unchanged : toPayload(await evaluate(visit, output, extras));
  const { limits } = visit.thread.execution.world;
  if (exceedsBytes(payload.text, limits.payloadBytes)) throw dataLimitExceeded(visit.state.name);
  if (assign.length === 0) return { output: payload, assigned: undefined, next };
  const assigned: Record<string, Json> = {};
  for (const [name, template] of assign) assigned[name] = await evaluate(visit, template, extras);
  const text = JSON.stringify(assigned);
  const all = JSON.stringify({ ...visit.thread.variables(), ...assigned });
  if (exceedsBytes(text, limits.payloadBytes) || exceedsBytes(all, MOST_VARIABLE_BYTES))
    throw dataLimitExceeded(visit.state.name);
  return { output: payload, assigned, next };
}

/** @param subject the state's name, or what returned a task's result */
export function dataLimitExceeded(subject: string): StateError {
  return new StateError(
    "States.DataLimitExceeded",
    `The state/task '${subject}' returned a result with a size exceeding the maximum number of bytes service limit.`,
  );
}

/** Writes the event and returns the error, in Step Functions' words. */
export function evaluationFailed(
  visit: Visit,
  { message, location }: EvaluationError,
  previousEventId?: number,
): StateError {
  const { thread, state, entered } = visit;
  const cause = `An error occurred while executing the state '${state.name}' (entered at the event id #${entered.id}). ${message}`;
  // Recorded on AWS: an evaluation that fails before anything else happened in the state points past its own entry.
  const previous = previousEventId ?? (thread.last === entered.id ? entered.previousEventId : thread.last);
  thread.last = thread.execution.history.add("EvaluationFailed", previous, {
    error: "States.QueryEvaluationError",
    cause,
    ...(location !== undefined && { location }),
    state: state.name,
  });
  return new StateError("States.QueryEvaluationError", cause);
}

function bindings(visit: Visit, extras: Extras): Record<string, unknown> {
  const { thread, input } = visit;
  const { clock } = thread.execution.world;
  return {
    ...thread.variables(),
    ...thread.execution.randomFunctions,
    millis: () => clock.now(),
    states: {
      input: input.value,
      context: context(visit, extras),
      ...(extras.result !== undefined && { result: extras.result }),
      ...(extras.errorOutput !== undefined && { errorOutput: extras.errorOutput }),
    },
  };
}

/** `$states.context`. Source: developer guide, "Context object". */
function context({ thread, state, entered }: Visit, extras: Extras): Json {
  const { source, world } = thread.execution;
  const item = extras.item ?? thread.item;
  return {
    Execution: {
      Id: source.arn,
      Input: source.input.value,
      Name: source.name,
      RoleArn: roleArn(world),
      StartTime: new Date(source.startMs).toISOString(),
      RedriveCount: source.redriveCount,
    },
    StateMachine: { Id: source.machineArn, Name: source.machineName },
    State: {
      EnteredTime: new Date(entered.timeMs).toISOString(),
      Name: state.name,
      ...(extras.retryCount !== undefined && { RetryCount: extras.retryCount }),
    },
    ...(extras.taskToken !== undefined && { Task: { Token: extras.taskToken } }),
    ...(item !== undefined && { Map: { Item: { Index: item.index, Value: item.value } } }),
  };
}
