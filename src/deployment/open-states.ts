// Which states of an execution are at work, read from its history: entered and not left again.
import type { HistoryEvent } from "@aws-sdk/client-sfn";
import { findState } from "../stages/states.ts";

export interface OpenState {
  readonly name: string;
  readonly enteredAt: Date;
}

/** @param events of the whole history, oldest first @returns in the order in which they were entered */
export function openStates(events: readonly HistoryEvent[]): OpenState[] {
  const open = new Map<string, OpenState>();
  for (const { stateEnteredEventDetails, stateExitedEventDetails, timestamp } of events) {
    const entered = stateEnteredEventDetails?.name;
    if (entered !== undefined) {
      open.delete(entered);
      open.set(entered, { name: entered, enteredAt: timestamp ?? new Date(0) });
    }
    const exited = stateExitedEventDetails?.name;
    if (exited !== undefined) open.delete(exited);
  }
  return [...open.values()];
}

/** A state that is not listed is shown by its name. States that hold others count only while nothing else is open. */
export function describeStates(open: readonly OpenState[]): string[] {
  const inner = open.filter(({ name }) => findState(name)?.holds !== true);
  return (inner.length > 0 ? inner : open).map(({ name }) => findState(name)?.words ?? name);
}
