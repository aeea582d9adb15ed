// The walk: from state to state until one ends its scope. States that were left before a restart are not run again.
import { InvariantError } from "../failure/errors.ts";
import { chooseNext } from "./choice-state.ts";
import { type Payload, parsePayload } from "./json-value.ts";
import type { State, StateScope } from "./machine.ts";
import { runMap } from "./map-state.ts";
import { runParallel } from "./parallel-state.ts";
import { StateError } from "./state-error.ts";
import { runTask } from "./task-state.ts";
import type { Thread } from "./thread.ts";
import { evaluateText, finish, type Outcome, type Visit } from "./visit.ts";
import { runWait } from "./wait-state.ts";

/** @returns the output of the last state. @throws StateError when a state fails and nothing catches it */
export async function runStates(scope: StateScope, input: Payload, thread: Thread): Promise<Payload> {
  const { exited } = thread.progress;
  let name: string | undefined = scope.startAt;
  let payload = input;
  let step = 0;
  if (exited !== undefined) {
    name = exited.next;
    payload = parsePayload(exited.output);
    step = exited.step + 1;
    thread.last = exited.last;
  }
  for (; name !== undefined; step++) {
    thread.cancellation.check();
    const state = scope.states.get(name);
    if (state === undefined) throw new InvariantError("a transition to no state", { name });
    thread.stateType = state.type;
    const visit = enter(thread, state, step, payload);
    const outcome = await runState(visit);
    thread.cancellation.check();
    leave(visit, outcome);
    thread.stateType = undefined;
    name = outcome.next;
    payload = outcome.output;
  }
  return payload;
}

function enter(thread: Thread, state: State, step: number, input: Payload): Visit {
  const { execution, progress } = thread;
  const known = progress.visit?.step === step ? progress.visit.entered : undefined;
  if (known !== undefined) {
    thread.last = Math.max(thread.last, known.id);
    return { thread, state, step, input, entered: known };
  }
  const previousEventId = thread.last;
  const id = execution.history.add(`${state.type}StateEntered`, previousEventId, {
    input: input.text,
    inputDetails: { truncated: false },
    name: state.name,
  });
  thread.last = id;
  const entered = { id, previousEventId, timeMs: execution.world.clock.now() };
  execution.record(progress, { kind: "entered", path: progress.path, step, ...entered });
  return { thread, state, step, input, entered };
}

function leave({ thread, state, step }: Visit, { output, assigned, next }: Outcome): void {
  const { execution, progress } = thread;
  thread.last = execution.history.add(`${state.type}StateExited`, thread.last, {
    name: state.name,
    output: output.text,
    outputDetails: { truncated: false },
    ...(assigned !== undefined && {
      assignedVariables: Object.fromEntries(
        Object.entries(assigned).map(([name, value]) => [name, JSON.stringify(value)]),
      ),
      assignedVariablesDetails: { truncated: false },
    }),
  });
  execution.record(progress, {
    kind: "exited",
    path: progress.path,
    step,
    ...(next !== undefined && { next }),
    output: output.text,
    ...(assigned !== undefined && { assigned: { ...assigned } }),
    last: thread.last,
  });
}

async function runState(visit: Visit): Promise<Outcome> {
  const { state } = visit;
  switch (state.type) {
    case "Pass":
      return finish(visit, state, visit.input);
    case "Succeed":
      return finish(visit, { output: state.output, assign: [], next: undefined }, visit.input);
    case "Fail":
      throw new StateError(
        state.error === undefined ? undefined : await evaluateText(visit, state.error, "Error"),
        state.cause === undefined ? undefined : await evaluateText(visit, state.cause, "Cause"),
      );
    case "Choice":
      return chooseNext({ ...visit, state });
    case "Wait":
      return runWait({ ...visit, state });
    case "Task":
      return runTask({ ...visit, state });
    case "Parallel":
      return runParallel({ ...visit, state });
    case "Map":
      return runMap({ ...visit, state });
    default:
      return state satisfies never;
  }
}
