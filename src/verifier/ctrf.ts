// CTRF (https://ctrf.io): a JSON list of tests. Only what is read here; its numbers are not trusted, tests are counted.
import { z } from "zod";
import { parseJson } from "./parse-json.ts";
import { MOST_TESTS, NAME_CHARACTERS, TEST_STATUSES, type TestResult } from "./report.ts";

const Ctrf = z.looseObject({
  results: z.looseObject({
    tests: z.array(z.looseObject({ name: z.string(), status: z.string().max(100) })).max(MOST_TESTS),
  }),
});

/** @returns undefined for what is no such report, or one with more tests than are read */
export function readCtrf(bytes: Uint8Array): TestResult[] | undefined {
  const parsed = Ctrf.safeParse(parseJson(bytes));
  if (!parsed.success) return undefined;
  return parsed.data.results.tests.map(({ name, status }) => ({
    name: name.slice(0, NAME_CHARACTERS),
    status: TEST_STATUSES.find(known => known === status) ?? "other",
  }));
}
