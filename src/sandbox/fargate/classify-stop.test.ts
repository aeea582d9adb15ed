import { expect, it } from "vitest";
import { classifyStop, type StoppedTask } from "./classify-stop.ts";

it.each<[string, StoppedTask, string]>([
  ["a Spot interruption", { stopCode: "SpotInterruption", startedAt: "t" }, "interrupted"],
  [
    "B25: one whose stopCode is missing",
    { stoppedReason: "Your Spot Task was interrupted.", startedAt: "t" },
    "interrupted",
  ],
  [
    "an image that cannot be pulled",
    { stoppedReason: "CannotPullContainerError: ref pull has been retried 5 time(s)" },
    "never-started",
  ],
  [
    "B23: one that ECS never started",
    { stopCode: "TaskFailedToStart", stoppedReason: "Capacity is unavailable at this time" },
    "never-started",
  ],
  [
    "a container out of memory",
    {
      stopCode: "EssentialContainerExited",
      startedAt: "t",
      containers: [{ exitCode: 137, reason: "OutOfMemoryError: Container killed due to memory usage" }],
    },
    "out-of-memory",
  ],
  [
    "the sweeper's stop",
    { stopCode: "UserInitiated", stoppedReason: "t1: too old", startedAt: "t" },
    "stopped",
  ],
  [
    "a driver's error",
    { stopCode: "EssentialContainerExited", startedAt: "t", containers: [{ exitCode: 70 }] },
    "failed",
  ],
  [
    "a driver's end",
    { stopCode: "EssentialContainerExited", startedAt: "t", containers: [{ exitCode: 0 }] },
    "ended",
  ],
  [
    "near miss: a task's own word spot",
    {
      stopCode: "EssentialContainerExited",
      startedAt: "t",
      containers: [{ exitCode: 1, reason: "spotless code" }],
    },
    "failed",
  ],
  ["near miss: a task that never reached its start without a reason", {}, "never-started"],
])("%s", (_, task, expected) => {
  expect(classifyStop(task)).toBe(expected);
});
