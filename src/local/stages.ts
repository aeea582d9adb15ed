// What a machine's events mean to whoever watches a run: which stage is at work, and how long each took.
import type { HistoryEvent } from "../asl/history.ts";
import type { Timings } from "../run/records.ts";
import type { Stage } from "../run/run-events.ts";
import { findState } from "../stages/states.ts";

/** The stage that begins with an event, undefined where none does. */
export function stageBegun(event: HistoryEvent): Stage | undefined {
  return event.type.endsWith("StateEntered") ? findState(stateName(event) ?? "")?.stage : undefined;
}

/** Wall time of each stage from a finished execution, ms. */
export function stageTimings(history: readonly HistoryEvent[]): Timings {
  const timings: Timings = {};
  const entered = new Map<string, number>();
  for (const event of history) {
    const name = stateName(event);
    const stage = name === undefined ? undefined : findState(name)?.stage;
    if (name === undefined || stage === undefined) continue;
    const timeMs = Date.parse(event.timestamp);
    if (event.type.endsWith("StateEntered")) entered.set(name, timeMs);
    else timings[stage] = (timings[stage] ?? 0) + timeMs - (entered.get(name) ?? timeMs);
  }
  return timings;
}

function stateName(event: HistoryEvent): string | undefined {
  const details = event.stateEnteredEventDetails ?? event.stateExitedEventDetails;
  return (details as { readonly name?: string } | undefined)?.name;
}
