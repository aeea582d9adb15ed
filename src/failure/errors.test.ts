import { describe, expect, it } from "vitest";
import { ERROR_NAMES, Failure, formatErrorText, InputError, InvariantError } from "./errors.ts";

describe("errors", () => {
  it("words a message as what, where, expected and fix", () => {
    const text = {
      what: "unknown key",
      where: "run.yaml:3: trainng",
      expected: "one of training, tasks",
      fix: "write training",
    };
    expect(formatErrorText(text)).toBe(
      "unknown key: run.yaml:3: trainng: one of training, tasks\n  fix: write training",
    );
    expect(formatErrorText({ what: "gone" })).toBe("gone");
  });

  it("names every error by a literal of the shared list", () => {
    const thrown = [
      new InputError("x"),
      new InvariantError("x"),
      new Failure("SandboxLost", "x", { retryable: true }),
    ];
    for (const error of thrown) expect(ERROR_NAMES).toContain(error.name);
  });

  it("lists the contradicting values of an invariant", () => {
    expect(new InvariantError("rows differ", { rows: 3, tokens: 5 }).message).toBe(
      "rows differ (rows=3, tokens=5)",
    );
  });

  it("derives the layer of a failure from its name", () => {
    expect(new Failure("SamplerUnavailable", "x", { retryable: true }).layer).toBe("sampler");
  });
});
