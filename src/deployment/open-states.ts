// Which states of an execution are at work, read from its history: entered and not left again.
import type { HistoryEvent } from "@aws-sdk/client-sfn";

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

/** States of the machines in infra/state-machines, in words. A state that is not listed is shown by its name. */
const WORDS: Readonly<Record<string, string>> = {
  Preflight: "preflight",
  NextStep: "deciding what to do next",
  Plan: "planning",
  Prepare: "preparing images",
  ImagesReady: "preparing images",
  WaitForImages: "waiting for images",
  Rollouts: "playing episodes",
  Score: "scoring",
  Close: "closing",
  TrainOnSpot: "training on Spot",
  TrainOnDemand: "training on demand",
  RolloutsAhead: "playing the next iteration's episodes",
  Publish: "publishing",
  Evaluate: "evaluating",
  Summarise: "summarising",
};
/** They hold others; with nothing else open, what they hold is not in the history yet. */
const HOLDERS: Readonly<Record<string, string>> = {
  Update: "training",
  Iterate: "in an iteration",
  EvaluateFirst: "in an evaluation",
};

export function describeStates(open: readonly OpenState[]): string[] {
  const inner = open.filter(({ name }) => HOLDERS[name] === undefined).map(({ name }) => WORDS[name] ?? name);
  return inner.length > 0 ? inner : open.map(({ name }) => HOLDERS[name] ?? name);
}
