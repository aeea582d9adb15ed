// Turns the steps of src/stages/iteration.ts into states of a state machine, in their order.

import type { StateName } from "../../src/stages/states.ts";
import type { Call, Evaluate, Expressions, ForEachShard, Step, Together } from "../../src/stages/step.ts";
import { type Catcher, type Flowchart, inOrder, type State, type TaskState, type Template } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { shards } from "./shards.ts";
import { execution, stage } from "./tasks.ts";
import { train } from "./train.ts";

type States = Record<string, State>;

interface Place {
  readonly parts: Parts;
  /** Suffix of every state's name: names are unique in a whole state machine. */
  readonly suffix: "" | "Ahead";
  /** Next state after the last step. */
  readonly next: StateName;
  /** State that catches every failure; without it a failure fails the state machine. */
  readonly onFailure?: StateName;
}

/** @returns states in their order; a state that names no successor goes on to the next one */
export function statesOf(steps: readonly Step[], place: Place): States {
  return steps.reduceRight<{ readonly states: States; readonly next: string }>(
    (following, step) => {
      const own = stateOf(step, following.next, place);
      return { states: { ...own, ...following.states }, next: Object.keys(own)[0] };
    },
    { states: {}, next: place.next },
  ).states;
}

function stateOf(step: Step, next: string, place: Place): States {
  if ("call" in step) return callStates(step, next, place);
  if ("forEachShard" in step) return shardStates(step, next, place);
  if ("together" in step) return togetherStates(step, place);
  return evaluateStates(step, next, place);
}

/**
 * A stopped run moves no further (src/run/run-state.ts). That is no failure: the run's state machine reads the run's
 * state next and ends as stopped.
 */
const WHEN_STOPPED = { ErrorEquals: ["RunStopped"], Next: "Stopped" satisfies StateName } satisfies Catcher;

function callStates(
  { call, state, input, keep, returns, mayStop, until }: Call,
  next: string,
  place: Place,
): States {
  const { parts, suffix } = place;
  const payload = "{% $states.result.Payload %}";
  const called = stage(parts, call, expressions(input), {
    ...(keep !== undefined && { Assign: { [keep]: payload } }),
    ...(returns && { Output: payload }),
    ...(mayStop && { Catch: [WHEN_STOPPED] }),
    ...failing(place),
  });
  if (until === undefined) return { [`${state}${suffix}`]: called };
  return {
    [`${state}${suffix}`]: called,
    [`${until.state}${suffix}`]: choice(until.ready, next),
    [`${until.wait}${suffix}`]: { Type: "Wait", Seconds: until.seconds, Next: `${state}${suffix}` },
  };
}

function shardStates({ forEachShard, state, plan }: ForEachShard, next: string, place: Place): States {
  const { parts, suffix } = place;
  return {
    [`${state}${suffix}`]: choice(`$${plan}.shardCount = 0`, next),
    [`${forEachShard}${suffix}`]: { ...shards(parts, `$${plan}`, suffix), ...failing(place), Next: next },
  };
}

function togetherStates({ together, train: job, meanwhile }: Together, { parts }: Place): States {
  const nothing = "NothingAhead" satisfies StateName;
  const ahead: Flowchart = inOrder({
    [meanwhile.state]: choice(`$not(${meanwhile.when})`, nothing),
    ...statesOf(meanwhile.steps, { parts, suffix: "Ahead", next: nothing, onFailure: nothing }),
    [nothing]: { Type: "Pass", Output: {} },
  });
  return {
    [together]: {
      Type: "Parallel",
      Comment: "With overlap, the next iteration's episodes are played by the old policy meanwhile",
      Branches: [train(parts, job), ahead],
      Output: "{% $states.result[0] %}",
    },
  };
}

function evaluateStates({ evaluate, state, when, input }: Evaluate, next: string, { parts }: Place): States {
  const name = "{% $states.context.Execution.Name & '-eval' %}";
  const { evaluationArn } = parts.machines;
  return {
    [state]: choice(`$not(${when})`, next),
    [evaluate]: execution(parts, evaluationArn, name, expressions(input), parts.limits.evaluationSeconds),
  };
}

function choice(condition: string, next: string): State {
  return { Type: "Choice", Choices: [{ Condition: `{% ${condition} %}`, Next: next }] };
}

function expressions(input: Expressions): { readonly [key: string]: Template } {
  return Object.fromEntries(Object.entries(input).map(([key, value]) => [key, `{% ${value} %}`]));
}

function failing({ onFailure }: Place): Pick<TaskState, "Catch"> {
  return onFailure === undefined ? {} : { Catch: [{ ErrorEquals: ["States.ALL"], Next: onFailure }] };
}
