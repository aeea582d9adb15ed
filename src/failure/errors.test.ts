import { describe, expect, it } from "vitest";
import { fromErrorMessage, toErrorMessage } from "./error-message.ts";
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

  it("keeps family, message and whether to retry on its way through a channel", () => {
    const through = (error: unknown) => fromErrorMessage(JSON.parse(JSON.stringify(toErrorMessage(error))));
    const lost = through(new Failure("SandboxLost", "gone", { retryable: true }));
    expect(lost).toBeInstanceOf(Failure);
    expect(lost).toMatchObject({ name: "SandboxLost", message: "gone", layer: "sandbox", retryable: true });
    expect(through(new InputError("x"))).toBeInstanceOf(InputError);
    expect(through(new RangeError("y")).message).toBe("y");
    expect(through("just text").message).toBe("just text");
  });

  it("derives the layer of a failure from its name", () => {
    expect(new Failure("SamplerUnavailable", "x", { retryable: true }).layer).toBe("sampler");
  });
});
