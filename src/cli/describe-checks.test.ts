import { expect, test } from "vitest";
import type { CheckEntry } from "./check-report.ts";
import { describeChecks } from "./describe-checks.ts";

const entry = (path: string, check: Partial<CheckEntry["check"]>): CheckEntry => ({
  ...{ path, setting: "", checkedAt: "2026-01-01T00:00:00.000Z", seconds: 1 },
  check: { task: path, passed: check.failed === undefined, warnings: [], ...check },
});
const show = (entries: readonly CheckEntry[], width?: number) =>
  describeChecks(entries, [], { knownCount: 0, file: "report.jsonl", ...(width !== undefined && { width }) });

test("a task that cannot be run here is said to be no use, and the whole fix is there, wrapped to the terminal", () => {
  const reason = `the task wants network access for the agent (public): /a/${"long/".repeat(30)}path: network_mode = "no-network"\n  fix: leave it out of the pool, or say in the images file what it gets instead: agent: { network: none, host }`;
  const text = show([entry("a", { failed: { gate: "can be run here", reason } })], 60);
  expect(text).toContain("no: cannot be run here      1\n");
  expect(text.replace(/\s+/g, " ")).toContain(reason.replace(/\s+/g, " "));
  const tooLong = text.split("\n").filter(line => line.length > 60);
  expect(tooLong.map(line => line.trim().includes(" "))).toEqual(tooLong.map(() => false)); // a path is not broken
});

test("what the tests printed stands below the task whose solution does not pass, line by line", () => {
  const reason =
    "outcome 0, expected 1 (no_report)\nthe tests printed last:\ncurl: (6) Could not resolve host: astral.sh";
  const text = show([entry("a", { failed: { gate: "solution passes", reason } })]);
  expect(text).toContain("    the tests printed last:\n    curl: (6) Could not resolve host: astral.sh\n");
});

test("how many assertions tasks have is told, since a dense reward is divided by one number for all", () => {
  const text = show([
    entry("a", { assertions: 2 }),
    entry("b", { assertions: 20 }),
    entry("c", { assertions: 0 }),
  ]);
  expect(text).toContain("assertions a task: 2 to 20; 1 tasks report none (reward.scale)\n");
});
