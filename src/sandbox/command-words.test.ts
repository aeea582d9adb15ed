import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { assertEnvironment, shellWords, whyNotRunnable } from "./command-words.ts";

function execute([program = "", ...args]: readonly string[]): string {
  return execFileSync(program, args, {
    encoding: "utf8",
    env: { OLDPWD: "/old", LC_ALL: "C", PATH: "/usr/bin:/bin" },
  });
}

test("a long command says the same as a short one, to the last character", () => {
  const text = fc
    .string({ unit: "grapheme", minLength: 40_000, maxLength: 70_000 })
    .map(raw => raw.replace(/['\0]/g, "🎉"));
  fc.assert(
    fc.property(text, said => {
      expect(execute(shellWords(`printf %s '${said}'`))).toBe(said);
    }),
    { numRuns: 10 },
  );
});

test("a long command finds no variable, argument or name that a short one does not", () => {
  const question = `echo "$0|$#|$1|$command|$part"; `;
  const short = execute(shellWords(question));
  expect(execute(shellWords(question + " ".repeat(40_000)))).toBe(short);
  expect(short).toBe("/bin/sh|0|||\n");
});

test("names that no shell exports are refused", () => {
  for (const name of ["", "1A", "A-B", "A B", "A=B", "Ä"])
    expect(() => assertEnvironment({ [name]: "x" }, "here")).toThrow("not an environment variable");
  expect(() => assertEnvironment({ A: "a\0b" }, "here")).toThrow("not an environment variable");
  expect(() => assertEnvironment({ _a1: "" }, "here")).not.toThrow();
});

test("what cannot be a command line is told apart from what is only long", () => {
  expect(whyNotRunnable("x".repeat(1 << 20))).toBeUndefined();
  expect(whyNotRunnable("x".repeat((1 << 20) + 1))).toContain("too long");
  expect(whyNotRunnable("é".repeat(600_000))).toContain("1200000 bytes");
  expect(whyNotRunnable("a\0")).toContain("NUL");
});
