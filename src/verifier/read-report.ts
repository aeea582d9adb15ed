// Reads the files of /logs/verifier in one documented order: reward.json, then reward.txt (as Harbor does), and
// ctrf.json for the single assertions. The files may have been written by anybody, so they are parsed by schema.
import { z } from "zod";
import { TEST_STATUSES, type TestResult, type VerifierCause } from "./report.ts";

/** CTRF (https://ctrf.io): only what is read here; its numbers are not trusted, the tests are counted. */
const Ctrf = z.looseObject({
  results: z.looseObject({
    tests: z.array(z.looseObject({ name: z.string().max(1000), status: z.string().max(100) })).max(10_000),
  }),
});

export interface ReadReport {
  readonly outcome: number | null;
  readonly tests: readonly TestResult[];
  readonly cause?: VerifierCause;
}

/** @param files names below /logs/verifier to their bytes */
export function readReport(files: ReadonlyMap<string, Uint8Array>): ReadReport {
  const reward = readReward(files);
  const report = files.get("ctrf.json");
  if (report === undefined) {
    if (reward === undefined) return { outcome: null, tests: [], cause: "no_report" };
    return {
      outcome: reward.value,
      tests: [],
      cause: reward.value === null ? "unreadable_reward" : "no_report",
    };
  }
  const tests = readCtrf(report);
  if (tests === undefined) return { outcome: reward?.value ?? null, tests: [], cause: "unreadable_report" };
  if (tests.length === 0) return { outcome: reward?.value ?? 0, tests, cause: "collection_error" };
  const allPassed = tests.every(test => test.status === "passed");
  if (reward === undefined) return { outcome: allPassed ? 1 : 0, tests };
  if (reward.value === null) return { outcome: allPassed ? 1 : 0, tests, cause: "unreadable_reward" };
  const anyFailed = tests.some(test => test.status === "failed");
  const conflict = (reward.value >= 1 && anyFailed) || (reward.value <= 0 && allPassed);
  return { outcome: reward.value, tests, ...(conflict && { cause: "report_conflict" as const }) };
}

/** The reward that the tests wrote; `null` when what they wrote is no finite number, undefined when they wrote none. */
function readReward(files: ReadonlyMap<string, Uint8Array>): { readonly value: number | null } | undefined {
  const json = files.get("reward.json");
  if (json !== undefined) {
    const parsed = z.looseObject({ reward: z.number() }).safeParse(parseJson(json));
    // Other keys are diagnostics: they are not summed into the reward (verifiers#2224).
    return { value: parsed.success ? parsed.data.reward : null };
  }
  const text = files.get("reward.txt");
  if (text === undefined) return undefined;
  const trimmed = Buffer.from(text).toString("utf8").trim();
  const value = Number(trimmed);
  return { value: trimmed !== "" && Number.isFinite(value) ? value : null };
}

function readCtrf(bytes: Uint8Array): TestResult[] | undefined {
  const parsed = Ctrf.safeParse(parseJson(bytes));
  if (!parsed.success) return undefined;
  return parsed.data.results.tests.map(({ name, status }) => ({
    name,
    status: TEST_STATUSES.find(known => known === status) ?? "other",
  }));
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}
