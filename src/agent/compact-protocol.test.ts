import { describe, expect, it } from "vitest";
import { formatObservation, parseAnswer } from "./compact-protocol.ts";

const exited = (exitCode: number) => ({ kind: "exited" as const, exitCode });

describe("answers", () => {
  it("are a command, or done", () => {
    expect(parseAnswer(" done\n")).toEqual({ kind: "done" });
    expect(parseAnswer("echo done")).toEqual({ kind: "command", command: "echo done" });
    expect(parseAnswer("")).toEqual({ kind: "command", command: "" });
  });
});

describe("observations", () => {
  it.each([
    ["", exited(0), "[ok]"],
    ["a\nb\n", exited(0), "a\nb"],
    ["", exited(2), "[exit 2]"],
    ["sh: 1: ecko: not found\n", exited(127), "ecko: not found\n[exit 127]"],
    ["/bin/sh: 2: eval: ecko: not found\n", exited(127), "ecko: not found\n[exit 127]"],
    ["half", { kind: "timed-out" as const, limitMs: 5000 }, "half\n[timed out after 5 s]"],
    ["", { kind: "signalled" as const, signal: "SIGKILL" }, "[killed by SIGKILL]"],
    ["the sh: prefix stays inside a line\n", exited(0), "the sh: prefix stays inside a line"],
  ])("of %j, %j are %j", (output, end, text) => {
    expect(formatObservation(output, end)).toBe(text);
  });
});
