import { expect, it } from "vitest";
import type { HistoryEvent } from "../asl/history.ts";
import { stageBegun, stageTimings } from "./stages.ts";

const event = (type: string, name: string, second: number): HistoryEvent => ({
  id: 1,
  previousEventId: 0,
  timestamp: new Date(second * 1000).toISOString(),
  type,
  [type.endsWith("Entered") ? "stateEnteredEventDetails" : "stateExitedEventDetails"]: { name },
});
const stay = (kind: string, name: string, from: number, to: number) => [
  event(`${kind}StateEntered`, name, from),
  event(`${kind}StateExited`, name, to),
];

it("adds up what belongs to one stage and leaves out what takes no time", () => {
  const history = [
    ...stay("Task", "Plan", 0, 1),
    ...stay("Task", "Prepare", 1, 3),
    ...stay("Choice", "ImagesReady", 3, 3),
    ...stay("Wait", "WaitForImages", 3, 33),
    ...stay("Task", "Prepare", 33, 34),
    event("MapStateEntered", "Rollouts", 34),
    event("MapStateExited", "Rollouts", 50),
    event("ParallelStateEntered", "Update", 50),
    ...stay("Task", "PlanAhead", 50, 51),
    ...stay("Task", "TrainOnSpot", 50, 59),
    event("ParallelStateExited", "Update", 60),
  ];
  expect(stageTimings(history)).toEqual({ plan: 1000, prepare: 33_000, rollout: 16_000, train: 10_000 });
});

it("a stage begins where one of its states is entered", () => {
  expect(stageBegun(event("MapStateEntered", "Rollouts", 0))).toBe("rollout");
  expect(stageBegun(event("MapStateExited", "Rollouts", 0))).toBeUndefined();
  expect(stageBegun(event("ChoiceStateEntered", "ImagesReady", 0))).toBeUndefined();
});
