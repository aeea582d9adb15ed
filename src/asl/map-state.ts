// Runs a Map state: evaluates its items and starts a child execution for each (distributed-map.ts).
import { runDistributed } from "./distributed-map.ts";
import type { Json } from "./json-value.ts";
import type { MapState } from "./machine.ts";
import { runRetrying } from "./retrying.ts";
import { evaluate, evaluationFailed, finish, type Outcome, type StateEntry } from "./state-entry.ts";
import { EvaluationError, unexpectedType } from "./value-template.ts";

type MapEntry = StateEntry & { readonly state: MapState };

export function runMap(entry: MapEntry): Promise<Outcome> {
  const { state } = entry;
  return runRetrying(entry, async ({ number, retryCount }) => {
    const items = state.readerArguments === undefined ? await evaluateItems(entry) : undefined;
    const result = await runDistributed(entry, items, number);
    return finish(entry, state, result, { result: result.value, retryCount });
  });
}

async function evaluateItems(entry: MapEntry): Promise<readonly Json[]> {
  const { items } = entry.state;
  const value = items === undefined ? entry.input.value : await evaluate(entry, items);
  if (Array.isArray(value)) return value as readonly Json[];
  throw evaluationFailed(
    entry,
    items === undefined
      ? new EvaluationError(`Map state input must be an array but was: ${JSON.stringify(value)}`, undefined)
      : unexpectedType(items, "Items", "array", value),
  );
}
