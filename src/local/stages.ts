// What a machine's events mean to whoever watches a run: which stage is at work, and how long each took.
import type { HistoryEvent } from "../asl/history.ts";
import type { Timings } from "../run/records.ts";
import type { Stage } from "../run/run-events.ts";

/** States of the iteration and evaluation machines by the stage that they are part of. What is not here takes no time. */
const STAGE_OF: Readonly<Record<string, Stage>> = {
  Plan: "plan",
  Prepare: "prepare",
  WaitForImages: "prepare",
  Rollouts: "rollout",
  Score: "score",
  Close: "close",
  Update: "train",
  Publish: "publish",
  Evaluate: "evaluate",
};

/** The stage that begins with an event, undefined where none does. */
export function stageBegun(event: HistoryEvent): Stage | undefined {
  return event.type.endsWith("StateEntered") ? STAGE_OF[stateName(event) ?? ""] : undefined;
}

/** Wall time of each stage from a finished execution, ms. */
export function stageTimings(history: readonly HistoryEvent[]): Timings {
  const timings: Timings = {};
  const entered = new Map<string, number>();
  for (const event of history) {
    const name = stateName(event);
    if (name === undefined || STAGE_OF[name] === undefined) continue;
    const timeMs = Date.parse(event.timestamp);
    if (event.type.endsWith("StateEntered")) entered.set(name, timeMs);
    else timings[STAGE_OF[name]] = (timings[STAGE_OF[name]] ?? 0) + timeMs - (entered.get(name) ?? timeMs);
  }
  return timings;
}

function stateName(event: HistoryEvent): string | undefined {
  const details = event.stateEnteredEventDetails ?? event.stateExitedEventDetails;
  return (details as { readonly name?: string } | undefined)?.name;
}
