// Reads TAP, the Test Anything Protocol, versions 12 to 14 (https://testanything.org/tap-version-14-specification.html). Subtests
// are indented and count by the line that sums them up.

import { MOST_TESTS, NAME_CHARACTERS, type TestResult } from "./report.ts";

const TEST = /^(not )?ok\b(?:\s+(\d+))?(?:\s*-)?\s*(.*)$/;
const PLAN = /^1\.\.(\d+)/;
const DIRECTIVE = /(?:^|\s)#\s*(skip|todo)\b/i;

/** @returns undefined when the file is no TAP, or has more than MOST_TESTS tests */
export function readTap(bytes: Uint8Array): TestResult[] | undefined {
  const tests: TestResult[] = [];
  let planned: number | undefined;
  let isTap = false;
  for (const line of Buffer.from(bytes).toString("utf8").split("\n")) {
    const [, plan] = PLAN.exec(line) ?? [];
    if (plan !== undefined) planned = Number(plan);
    if (plan !== undefined || line.startsWith("TAP version ")) isTap = true;
    if (line.startsWith("Bail out!")) {
      tests.push({ name: line.trimEnd().slice(0, NAME_CHARACTERS), status: "failed" });
      isTap = true;
    }
    const [found, not, number, description = ""] = TEST.exec(line) ?? [];
    if (found === undefined) continue;
    isTap = true;
    const directive = DIRECTIVE.exec(description);
    const name = description.slice(0, directive?.index).trim() || `test ${number ?? tests.length + 1}`;
    // A TODO test is neither passed nor failed, whatever it says.
    const status = directive !== null ? "skipped" : not === undefined ? "passed" : "failed";
    tests.push({ name: name.slice(0, NAME_CHARACTERS), status });
    if (tests.length > MOST_TESTS) return undefined;
  }
  if (!isTap || (planned ?? 0) > MOST_TESTS) return undefined;
  // Planned tests that never ran did not pass.
  for (let number = tests.length + 1; number <= (planned ?? 0); number++)
    tests.push({ name: `test ${number} did not run`, status: "failed" });
  return tests;
}
