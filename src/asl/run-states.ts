// Walks from state to state until one ends the scope. States that were left before a restart do not run again.
import { InvariantError } from "../failure/errors.ts";
import type { Branch } from "./branch.ts";
import { sleepUntil } from "./clock.ts";
import { type Payload, parsePayload } from "./json-value.ts";
import type { ChoiceState, State, StateScope } from "./machine.ts";
import { runMap } from "./map-state.ts";
import { runParallel } from "./parallel-state.ts";
import {
  evaluateBoolean,
  evaluateNumber,
  evaluateText,
  finish,
  type Outcome,
  type StateEntry,
} from "./state-entry.ts";
import { StateError } from "./state-error.ts";
import { runTask } from "./task-state.ts";

/** @returns the output of the last state. @throws StateError when a state fails and nothing catches it */
export async function runStates(scope: StateScope, input: Payload, branch: Branch): Promise<Payload> {
  const { exited } = branch.progress;
  let name: string | undefined = scope.startAt;
  let payload = input;
  let step = 0;
  if (exited !== undefined) {
    name = exited.next;
    payload = parsePayload(exited.output);
    step = exited.step + 1;
    branch.last = exited.last;
  }
  for (; name !== undefined; step++) {
    branch.cancellation.check();
    const state = scope.states.get(name);
    if (state === undefined) throw new InvariantError("a transition to no state", { name });
    branch.stateType = state.type;
    const entry = enter(branch, state, step, payload);
    const outcome = await runState(entry);
    branch.cancellation.check();
    leave(entry, outcome);
    branch.stateType = undefined;
    name = outcome.next;
    payload = outcome.output;
  }
  return payload;
}

function enter(branch: Branch, state: State, step: number, input: Payload): StateEntry {
  const { execution, progress } = branch;
  const known = progress.entry?.step === step ? progress.entry.entered : undefined;
  if (known !== undefined) {
    branch.last = Math.max(branch.last, known.id);
    return { branch, state, step, input, entered: known };
  }
  const previousEventId = branch.last;
  const id = execution.history.add(`${state.type}StateEntered`, previousEventId, {
    input: input.text,
    inputDetails: { truncated: false },
    name: state.name,
  });
  branch.last = id;
  const entered = { id, previousEventId, timeMs: execution.runtime.clock.now() };
  execution.record(progress, { kind: "entered", path: progress.path, step, ...entered });
  return { branch, state, step, input, entered };
}

function leave({ branch, state, step }: StateEntry, { output, assigned, next }: Outcome): void {
  const { execution, progress } = branch;
  branch.last = execution.history.add(`${state.type}StateExited`, branch.last, {
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
    next,
    output: output.text,
    assigned,
    last: branch.last,
  });
}

async function runState(entry: StateEntry): Promise<Outcome> {
  const { state } = entry;
  switch (state.type) {
    case "Pass":
      return finish(entry, state, entry.input);
    case "Succeed":
      return finish(entry, { output: state.output, assign: [], next: undefined }, entry.input);
    case "Fail":
      throw new StateError(
        state.error === undefined ? undefined : await evaluateText(entry, state.error, "Error"),
        state.cause === undefined ? undefined : await evaluateText(entry, state.cause, "Cause"),
      );
    case "Choice":
      return chooseNext({ ...entry, state });
    case "Wait": {
      const { execution, cancellation } = entry.branch;
      const seconds = await evaluateNumber(entry, state.seconds, "Seconds");
      // Counted from the state's entry, also after a restart.
      await sleepUntil(execution.runtime.clock, entry.entered.timeMs + 1000 * seconds, cancellation);
      return finish(entry, state, entry.input);
    }
    case "Task":
      return runTask({ ...entry, state });
    case "Parallel":
      return runParallel({ ...entry, state });
    case "Map":
      return runMap({ ...entry, state });
    default:
      return state satisfies never;
  }
}

/** @throws StateError States.NoChoiceMatched when no rule holds and there is no Default */
async function chooseNext(entry: StateEntry & { readonly state: ChoiceState }): Promise<Outcome> {
  const { state } = entry;
  for (const [index, rule] of state.rules.entries())
    if (await evaluateBoolean(entry, rule.condition, `Choices[${index}]/Condition`))
      return finish(entry, rule, entry.input);
  if (state.otherwise !== undefined) return finish(entry, state.otherwise, entry.input);
  throw new StateError(
    "States.NoChoiceMatched",
    `An error occurred while executing the state '${state.name}' (entered at the event id #${entry.entered.id}). No Choice rule matched and there is no Default.`,
  );
}
