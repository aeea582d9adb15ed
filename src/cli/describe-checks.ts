// What `t1 tasks check` tells a person: how many tasks ended where and why, and which.
import type { CheckEntry } from "./check-report.ts";
import { formatTable } from "./table.ts";

/** Failing tasks that are named one by one; the report names all. */
const NAMED = 40;
const REASON_CHARACTERS = 160;

export function describeChecks(
  entries: readonly CheckEntry[],
  unchecked: readonly { readonly path: string; readonly reason: string }[],
  { knownCount, file }: { readonly knownCount: number; readonly file: string },
): string {
  const failed = entries.flatMap(({ path, check: { failed: problem } }) =>
    problem === undefined ? [] : [{ path, outcome: problem.gate, reason: problem.reason }],
  );
  const notChecked = unchecked.map(({ path, reason }) => ({ path, outcome: "not checked", reason }));
  const others = [...failed, ...notChecked];
  const passedCount = entries.length - failed.length;
  const counts = countBy(others.map(({ outcome, reason }) => JSON.stringify([outcome, shorten(reason)])));
  const rows = [...counts].map(([key, count]) => [...(JSON.parse(key) as [string, string]), `${count}`]);
  const named = others.slice(0, NAMED).map(({ path, outcome, reason }) => [path, outcome, oneLine(reason)]);
  const parts = [
    formatTable(["outcome", "reason", "tasks"], [["passed every gate", "", `${passedCount}`], ...rows]),
  ];
  if (named.length > 0) parts.push("\n", formatTable(["task", "outcome", "reason"], named));
  if (others.length > NAMED) parts.push(`… and ${others.length - NAMED} more, in the report\n`);
  const known = knownCount === 0 ? "" : `, ${knownCount} of them known from an earlier check`;
  const left = unchecked.length === 0 ? "" : `; ${unchecked.length} not checked: the same command goes on`;
  parts.push(`\n${passedCount} of ${entries.length} checked tasks passed every gate${known}${left}\n`);
  parts.push(`report: ${file}\n`);
  return parts.join("");
}

/** The kind of the reason, without what is special to one task. */
function shorten(reason: string): string {
  return (/^[^:;(\n]*/.exec(reason)?.[0] ?? reason).trim();
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > REASON_CHARACTERS ? `${line.slice(0, REASON_CHARACTERS)}…` : line;
}

/** The most frequent first. */
function countBy(keys: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return new Map([...counts].sort((a, b) => b[1] - a[1]));
}
