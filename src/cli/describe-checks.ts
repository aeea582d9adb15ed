// What `t1 tasks check` tells a person: how many tasks can be trained on here, and why the others cannot.
import type { CheckEntry } from "./check-report.ts";
import { formatTable, wrapText } from "./table.ts";

/** Failing tasks that are described one by one; the report has all. */
const DESCRIBED = 40;
const INDENT = "    ";

export function describeChecks(
  entries: readonly CheckEntry[],
  unchecked: readonly { readonly path: string; readonly reason: string }[],
  {
    knownCount,
    file,
    width = 100,
  }: {
    readonly knownCount: number;
    readonly file: string;
    /** Columns of the terminal. */
    readonly width?: number;
  },
): string {
  const failed = entries.flatMap(({ path, check: { failed: problem } }) =>
    problem === undefined ? [] : [{ path, outcome: `no: ${FAILED[problem.gate]}`, reason: problem.reason }],
  );
  const notChecked = unchecked.map(({ path, reason }) => ({ path, outcome: "not checked", reason }));
  const others = [...failed, ...notChecked];
  const passedCount = entries.length - failed.length;
  const rows = [...countBy(others.map(({ outcome }) => outcome))].map(([outcome, count]) => [
    outcome,
    `${count}`,
  ]);
  const parts = [formatTable(["can be trained on here", "tasks"], [["yes", `${passedCount}`], ...rows])];
  for (const { path, outcome, reason } of others.slice(0, DESCRIBED))
    parts.push(`\n${path}: ${outcome}\n${indent(reason, width)}`);
  if (others.length > DESCRIBED) parts.push(`\n… and ${others.length - DESCRIBED} more, in the report\n`);
  const known = knownCount === 0 ? "" : `, ${knownCount} of them known from an earlier check`;
  const left = unchecked.length === 0 ? "" : `; ${unchecked.length} not checked: the same command goes on`;
  parts.push(`\n${passedCount} of ${entries.length} checked tasks can be trained on here${known}${left}\n`);
  parts.push(...describeCounts(entries), `report: ${file}\n`);
  return parts.join("");
}

/** What is wrong with a task that did not pass a gate. */
const FAILED: Readonly<Record<NonNullable<CheckEntry["check"]["failed"]>["gate"], string>> = {
  loads: "does not load",
  "can be run here": "cannot be run here",
  "image builds": "its image does not build",
  "is healthy": "is not healthy",
  "tests hidden": "its tests are not hidden",
  "doing nothing fails": "doing nothing does not fail",
  "solution passes": "its solution does not pass",
  "solution passes again": "its solution does not pass a second time",
};

/** How many assertions tests report: a dense reward is divided by one number for all. */
function describeCounts(entries: readonly CheckEntry[]): string[] {
  const counts = entries.flatMap(({ check: { assertions } }) => assertions ?? []);
  const counted = counts.filter(count => count > 0);
  if (counted.length === 0) return [];
  const without = counts.length - counted.length;
  return [
    `assertions a task: ${Math.min(...counted)} to ${Math.max(...counted)}${without === 0 ? "" : `; ${without} tasks report none`} (reward.scale)\n`,
  ];
}

/** Every line of a reason, wrapped to the terminal: the fix stands in the last one. */
function indent(reason: string, width: number): string {
  return reason
    .trimEnd()
    .split("\n")
    .flatMap(line => wrapText(line.trim(), Math.max(20, width - INDENT.length)))
    .map(line => `${INDENT}${line}\n`)
    .join("");
}

/** The most frequent first. */
function countBy(keys: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return new Map([...counts].sort((a, b) => b[1] - a[1]));
}
