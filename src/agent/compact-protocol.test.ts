import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatObservation, limitTokens, parseAnswer } from "./compact-protocol.ts";

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

describe("token limit", () => {
  it("keeps short observations whole and never exceeds the limit", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(500), { maxLength: 60 }),
        fc.integer({ min: 1, max: 40 }),
        (tokens, limit) => {
          const kept = limitTokens(tokens, limit, [900, 901]);
          expect(kept.length).toBe(Math.min(tokens.length, limit));
          if (tokens.length <= limit) expect(kept).toEqual(tokens);
        },
      ),
    );
  });

  it("cuts the middle, with a marker, and keeps both ends", () => {
    const tokens = Array.from({ length: 30 }, (_, i) => i);
    expect(limitTokens(tokens, 14, [900, 901])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 900, 901, 26, 27, 28, 29]);
  });
});
