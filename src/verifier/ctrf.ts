// Reads CTRF (https://ctrf.io), a JSON list of tests. We count the tests ourselves and ignore the report's own totals.
import { z } from "zod";
import { parseJson } from "./parse-json.ts";
import { MOST_TESTS, NAME_CHARACTERS, TEST_STATUSES, type TestResult } from "./report.ts";

const Ctrf = z.looseObject({
  results: z.looseObject({
    tests: z.array(z.looseObject({ name: z.string(), status: z.string().max(100) })).max(MOST_TESTS),
  }),
});

/** @returns undefined when the file is no CTRF, or has more than MOST_TESTS tests */
export function readCtrf(bytes: Uint8Array): TestResult[] | undefined {
  const parsed = Ctrf.safeParse(parseJson(bytes));
  if (!parsed.success) return undefined;
  return parsed.data.results.tests.map(({ name, status }) => ({
    name: name.slice(0, NAME_CHARACTERS),
    status: TEST_STATUSES.find(known => known === status) ?? "other",
  }));
}
