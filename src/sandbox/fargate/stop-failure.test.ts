import { expect, test } from "vitest";
import { failureOfStop, type Stopped } from "./stop-failure.ts";

const startedAt = new Date(0);
const exited = { startedAt, stopCode: "EssentialContainerExited" };
const container = (name: string, exitCode: number, reason?: string) => ({
  ...{ name, exitCode },
  ...(reason === undefined ? {} : { reason }),
});

test.each<[string, Stopped, "SandboxLost" | "SandboxBroken"]>([
  [
    "its deadline, at which the daemon ends and the platform kills what is beside it",
    { ...exited, containers: [container("agent", 0), container("verifier", 137)] },
    "SandboxLost",
  ],
  ["a daemon that ended with an error", { ...exited, containers: [container("agent", 1)] }, "SandboxBroken"],
  ["KILL from outside", { ...exited, containers: [container("agent", 137)] }, "SandboxLost"],
  [
    "KILL because memory ran out",
    {
      ...exited,
      containers: [container("agent", 137, "OutOfMemoryError: Container killed due to memory usage")],
    },
    "SandboxBroken",
  ],
  [
    "memory that ran out in the grading container alone",
    { startedAt, containers: [container("verifier", 137, "OutOfMemoryError: killed")] },
    "SandboxBroken",
  ],
  [
    "B25: Spot, in words only",
    { startedAt, stoppedReason: "Your Spot Task was interrupted." },
    "SandboxLost",
  ],
  ["somebody's stop", { startedAt, stopCode: "UserInitiated", stoppedReason: "t1: too old" }, "SandboxLost"],
  ["a lost host", { startedAt, stopCode: "InfrastructureHealth" }, "SandboxLost"],
  ["nothing that anybody said", { startedAt }, "SandboxLost"],
])("%s", (_, stopped, name) => {
  const failure = failureOfStop("sandbox x", stopped);
  expect([failure.name, failure.retryable]).toEqual([name, name === "SandboxLost"]);
});
