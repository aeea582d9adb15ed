// biome-ignore-all lint/suspicious/noTemplateCurlyInString: env tables hold references of this form
import { describe, expect, it } from "vitest";
import { InputError } from "../failure/errors.ts";
import { resolveEnv } from "./resolve-env.ts";

const HOST = { SET: "value", EMPTY: "", "WITH SPACE": "odd", UNDEFINED: undefined };

// Results of harbor.utils.env.resolve_env_vars, Harbor 0.26.0.
const ROWS: readonly (readonly [value: string, resolved: string])[] = [
  ["", ""],
  ["plain", "plain"],
  ["${SET}", "value"],
  ["${SET:-other}", "value"],
  ["${EMPTY}", ""],
  ["${EMPTY:-other}", ""],
  ["${UNSET:-other}", "other"],
  ["${UNSET:-}", ""],
  ["${UNSET:-a}b}", "a}b"],
  ["${UNSET:-${SET}}", "${SET}"],
  ["${UNDEFINED:-other}", "other"],
  ["${WITH SPACE}", "odd"],
  ["$SET", "$SET"],
  ["a${SET}", "a${SET}"],
  ["${SET} ", "${SET} "],
  ["${}", "${}"],
  ["${SET:other}", "${SET:other}"],
];

describe("resolveEnv", () => {
  it.each(ROWS)("makes of %j %j", (value, resolved) => {
    expect(resolveEnv({ KEY: value }, HOST, "here")).toEqual({ KEY: resolved });
  });

  it("names variable, file and key when a variable is not set", () => {
    expect(() => resolveEnv({ A: "x", KEY: "${UNSET}" }, HOST, "/t/task.toml: verifier.env")).toThrow(
      new InputError(
        'environment variable UNSET is not set: /t/task.toml: verifier.env.KEY = "${UNSET}": a value on the host, or a default in the task\n' +
          '  fix: set UNSET before starting, or write "${UNSET:-default}" in the task',
      ),
    );
  });

  it("does not take a variable from the object's prototype", () => {
    expect(() => resolveEnv({ KEY: "${toString}" }, HOST, "here")).toThrow("toString is not set");
  });
});
