// Every state of the machines by its name: the stage whose time it counts to, and words for whoever watches a run. The
// definitions in infra/ may use no other name; a laptop and the commands for a deployment read this list.
import type { Stage } from "../run/run-events.ts";

interface StateDescription {
  /** Left out where a state takes no time of its own. */
  readonly stage?: Stage;
  /** Left out where nobody has to be told of it. */
  readonly words?: string;
  /** It holds other states, which say more while they are open. */
  readonly holds?: true;
}

const describe = <const States extends Record<string, StateDescription>>(
  states: States,
): Readonly<Record<keyof States, StateDescription>> => states;

export const STATES = describe({
  Init: {},
  // A run.
  Preflight: { words: "preflight" },
  NextStep: { words: "deciding what to do next" },
  WhichStep: {},
  Iterate: { words: "in an iteration", holds: true },
  EvaluateFirst: { words: "in an evaluation", holds: true },
  ContinueAsNew: {},
  HandedOver: {},
  BudgetSpent: {},
  // An iteration or an evaluation.
  Plan: { stage: "plan", words: "planning" },
  Prepare: { stage: "prepare", words: "preparing images" },
  ImagesReady: { words: "preparing images" },
  WaitForImages: { stage: "prepare", words: "waiting for images" },
  AnythingToRun: {},
  Rollouts: { stage: "rollout", words: "playing episodes" },
  PlayOnSpot: {},
  SpotEnded: {},
  PlayOnDemand: {},
  ShardRefused: {},
  ShardBroken: {},
  Score: { stage: "score", words: "scoring" },
  Close: { stage: "close", words: "closing" },
  Update: { stage: "train", words: "training", holds: true },
  TrainOnSpot: { words: "training on Spot" },
  SpotTrainingEnded: {},
  TrainOnDemand: { words: "training on demand" },
  TrainingRefused: {},
  TrainingBroken: {},
  Publish: { stage: "publish", words: "publishing" },
  EvaluationDue: {},
  Evaluate: { stage: "evaluate", words: "evaluating" },
  Summarise: { words: "summarising" },
  Done: {},
  Stopped: {},
  // The next iteration's rollout, beside the training of this one.
  Overlap: {},
  PlanAhead: {},
  PrepareAhead: {},
  ImagesReadyAhead: {},
  WaitForImagesAhead: {},
  AnythingToRunAhead: {},
  RolloutsAhead: { words: "playing the next iteration's episodes" },
  PlayOnSpotAhead: {},
  SpotEndedAhead: {},
  PlayOnDemandAhead: {},
  ShardRefusedAhead: {},
  ShardBrokenAhead: {},
  NothingAhead: {},
});
export type StateName = keyof typeof STATES;

export function findState(name: string): StateDescription | undefined {
  return Object.hasOwn(STATES, name) ? STATES[name as StateName] : undefined;
}
