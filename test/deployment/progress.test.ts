// The progress that `watch` shows of a run, from histories as Step Functions writes them.
import type { HistoryEvent } from "@aws-sdk/client-sfn";
import { expect, it } from "vitest";
import { describeProgress } from "../../src/cli/stack-progress.ts";
import { describeStates, openStates } from "../../src/deployment/open-states.ts";

const event = (kind: "entered" | "exited", name: string): HistoryEvent =>
  ({
    timestamp: new Date(0),
    ...(kind === "entered" ? { stateEnteredEventDetails: { name } } : { stateExitedEventDetails: { name } }),
  }) as HistoryEvent;

it("names the states that were entered and not left, the inner ones of a holder", () => {
  const events = [
    event("entered", "Plan"),
    event("exited", "Plan"),
    event("entered", "Update"),
    event("entered", "TrainOnSpot"),
    event("entered", "RolloutsAhead"),
  ];
  expect(describeStates(openStates(events))).toEqual([
    "training on Spot",
    "playing the next iteration's episodes",
  ]);
  expect(describeStates(openStates(events.slice(0, 3)))).toEqual(["training"]);
});

it("counts shards, says what a job waits for, and which policy is evaluated", () => {
  const part = { arn: "", doing: ["playing episodes"] } as const;
  const shards = { total: 8, succeeded: 3, failed: 1, running: 4 };
  const name = (rest: string) => `r-s1-${rest}`;
  expect(
    describeProgress({ doing: [], parts: [{ ...part, kind: "iteration", name: name("i000002"), shards }] }),
  ).toBe("iteration 3  playing episodes  4/8 shards  4 at work  1 failed");
  const job = { status: "RUNNABLE", reason: "no capacity" };
  expect(
    describeProgress({
      doing: [],
      parts: [{ ...part, doing: ["training on Spot"], kind: "iteration", name: name("i000000"), job }],
    }),
  ).toBe("iteration 1  training on Spot  job RUNNABLE: no capacity");
  expect(
    describeProgress({ doing: [], parts: [{ ...part, kind: "evaluation", name: name("i000002-eval") }] }),
  ).toBe("evaluation of policy 3  playing episodes");
  expect(describeProgress({ doing: ["preflight"], parts: [] })).toBe("preflight");
});
