// One entry of a branch into a state: the values that expressions see there, and the checks of what they return.
import type { Branch } from "./branch.ts";
import { roleArn } from "./execution.ts";
import type { Json, Payload } from "./json-value.ts";
import { exceedsBytes, toPayload } from "./json-value.ts";
import type { Assignments, State } from "./machine.ts";
import { StateError } from "./state-error.ts";
import { EvaluationError, evaluateTemplate, type Template, unexpectedType } from "./value-template.ts";

/** Quota: all variables of an execution together. */
const MOST_VARIABLE_BYTES = 10 * 1024 * 1024;

export interface StateEntry {
  readonly branch: Branch;
  readonly state: State;
  /** Number of the state in its branch, from 0. */
  readonly step: number;
  readonly input: Payload;
  readonly entered: { readonly id: number; readonly previousEventId: number; readonly timeMs: number };
}

/** Values that an expression may see besides the input. */
export interface Extras {
  readonly result?: Json;
  readonly errorOutput?: Json;
  readonly retryCount?: number;
  /** Of the Map whose ItemSelector is evaluated. */
  readonly item?: { readonly index: number; readonly value: Json };
}

export interface Outcome {
  readonly output: Payload;
  readonly assigned: Readonly<Record<string, Json>> | undefined;
  readonly next: string | undefined;
}

/** @throws StateError States.QueryEvaluationError, after writing the event EvaluationFailed */
export async function evaluate(entry: StateEntry, template: Template, extras: Extras = {}): Promise<Json> {
  if (template.kind === "literal") return template.value;
  try {
    return await evaluateTemplate(template, bindings(entry, extras));
  } catch (error) {
    if (error instanceof EvaluationError) throw evaluationFailed(entry, error);
    throw error;
  }
}

/** @throws StateError States.QueryEvaluationError when the value is no number, or not within the bounds */
export async function evaluateNumber(
  entry: StateEntry,
  template: Template,
  field: string,
  {
    isWhole = true,
    min = 0,
    max = 99_999_999,
    ...extras
  }: Extras & { readonly isWhole?: boolean; readonly min?: number; readonly max?: number } = {},
): Promise<number> {
  const value = await evaluate(entry, template, extras);
  if (typeof value !== "number")
    throw evaluationFailed(entry, unexpectedType(template, field, "number", value));
  if ((isWhole && !Number.isInteger(value)) || value < min || value > max)
    throw evaluationFailed(
      entry,
      new EvaluationError(
        `The field '${field}' must be ${isWhole ? "a whole number" : "a number"} from ${min} to ${max} but was: ${value}`,
        field,
      ),
    );
  return value;
}

export async function evaluateText(entry: StateEntry, template: Template, field: string): Promise<string> {
  const value = await evaluate(entry, template);
  if (typeof value !== "string")
    throw evaluationFailed(entry, unexpectedType(template, field, "string", value));
  return value;
}

export async function evaluateBoolean(
  entry: StateEntry,
  template: Template,
  field: string,
): Promise<boolean> {
  const value = await evaluate(entry, template);
  if (typeof value !== "boolean")
    throw evaluationFailed(entry, unexpectedType(template, field, "boolean", value));
  return value;
}

/**
 * Evaluates the output and the variables of a state that ends. Both see the variables as they were before.
 *
 * @param unchanged the output of a state that declares none
 * @throws StateError States.QueryEvaluationError, States.DataLimitExceeded
 */
export async function finish(
  entry: StateEntry,
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
  const payload = output === undefined ? unchanged : toPayload(await evaluate(entry, output, extras));
  const { limits } = entry.branch.execution.runtime;
  if (exceedsBytes(payload.text, limits.payloadBytes)) throw dataLimitExceeded(entry.state.name);
  if (assign.length === 0) return { output: payload, assigned: undefined, next };
  const assigned: Record<string, Json> = {};
  for (const [name, template] of assign) assigned[name] = await evaluate(entry, template, extras);
  const text = JSON.stringify(assigned);
  const all = JSON.stringify({ ...entry.branch.variables(), ...assigned });
  if (exceedsBytes(text, limits.payloadBytes) || exceedsBytes(all, MOST_VARIABLE_BYTES))
    throw dataLimitExceeded(entry.state.name);
  return { output: payload, assigned, next };
}

/** @param subject the state's name, or the service that returned a task's result */
export function dataLimitExceeded(subject: string): StateError {
  return new StateError(
    "States.DataLimitExceeded",
    `The state/task '${subject}' returned a result with a size exceeding the maximum number of bytes service limit.`,
  );
}

/** Writes the event and returns the error, in Step Functions' words. */
export function evaluationFailed(entry: StateEntry, { message, location }: EvaluationError): StateError {
  const { branch, state, entered } = entry;
  const cause = `An error occurred while executing the state '${state.name}' (entered at the event id #${entered.id}). ${message}`;
  // Recorded on AWS: an evaluation that fails before anything else happened in the state points past its own entry.
  const previous = branch.last === entered.id ? entered.previousEventId : branch.last;
  branch.last = branch.execution.history.add("EvaluationFailed", previous, {
    error: "States.QueryEvaluationError",
    cause,
    location,
    state: state.name,
  });
  return new StateError("States.QueryEvaluationError", cause);
}

function bindings(entry: StateEntry, extras: Extras): Record<string, unknown> {
  const { branch, input } = entry;
  const { clock } = branch.execution.runtime;
  return {
    ...branch.variables(),
    ...branch.execution.randomFunctions,
    millis: () => clock.now(),
    states: {
      input: input.value,
      context: context(entry, extras),
      result: extras.result,
      errorOutput: extras.errorOutput,
    },
  };
}

/** `$states.context`. Source: developer guide, "Context object". */
function context({ branch, state, entered }: StateEntry, { retryCount, item }: Extras): Json {
  const { source, runtime } = branch.execution;
  return {
    Execution: {
      Id: source.arn,
      Input: source.input.value,
      Name: source.name,
      RoleArn: roleArn(runtime),
      StartTime: new Date(source.startMs).toISOString(),
      RedriveCount: 0,
    },
    StateMachine: { Id: source.machineArn, Name: source.machineName },
    State: {
      EnteredTime: new Date(entered.timeMs).toISOString(),
      Name: state.name,
      RetryCount: retryCount,
    },
    Map: item && { Item: { Index: item.index, Value: item.value } },
  };
}
