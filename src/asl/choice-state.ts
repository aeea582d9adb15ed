// Choice: the first rule whose condition holds.
import type { ChoiceState } from "./machine.ts";
import { StateError } from "./state-error.ts";
import { evaluateBoolean, finish, type Outcome, type Visit } from "./visit.ts";

/** @throws StateError States.NoChoiceMatched when no rule holds and there is no Default */
export async function chooseNext(visit: Visit & { readonly state: ChoiceState }): Promise<Outcome> {
  const { state } = visit;
  for (const [index, rule] of state.rules.entries())
    if (await evaluateBoolean(visit, rule.condition, `Choices[${index}]/Condition`))
      return finish(visit, rule, visit.input);
  if (state.otherwise !== undefined) return finish(visit, state.otherwise, visit.input);
  throw new StateError(
    "States.NoChoiceMatched",
    `An error occurred while executing the state '${state.name}' (entered at the event id #${visit.entered.id}). No Choice rule matched and there is no Default.`,
  );
}
