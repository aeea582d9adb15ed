// Reads the files of /logs/verifier in one documented order. The reward: reward.json, then reward.txt (as Harbor does).
// The single assertions: CTRF, then JUnit XML, then TAP; the first file that is there counts, readable or not. The files
// may have been written by anybody, so they are parsed by schema and their sizes are limited.
import { z } from "zod";
import { readCtrf } from "./ctrf.ts";
import { readJunit } from "./junit.ts";
import { parseJson } from "./parse-json.ts";
import type { TestResult, VerifierCause } from "./report.ts";
import { readTap } from "./tap.ts";

const REWARD_FILES = ["reward.json", "reward.txt"] as const;

const REPORT_FILES: readonly (readonly [
  name: string,
  read: (bytes: Uint8Array) => TestResult[] | undefined,
])[] = [
  ["ctrf.json", readCtrf],
  ["junit.xml", readJunit],
  ["results.xml", readJunit],
  ["report.xml", readJunit],
  ["results.tap", readTap],
  ["report.tap", readTap],
];

/** Names of the files that we read. */
export const KNOWN_FILES: readonly string[] = [...REWARD_FILES, ...REPORT_FILES.map(([name]) => name)];

/** A longer file is no report. */
const FILE_LIMIT_BYTES = 8 << 20;

export interface ReadReport {
  readonly outcome: number | null;
  readonly rewards?: Record<string, number>;
  readonly tests: readonly TestResult[];
  readonly cause?: VerifierCause;
}

/** @param files bytes by name below /logs/verifier */
export function readReport(files: ReadonlyMap<string, Uint8Array>): ReadReport {
  const reward = readReward(files);
  const rewards = reward?.rewards === undefined ? {} : { rewards: reward.rewards };
  const [, read, report] = REPORT_FILES.map(
    ([name, reader]) => [name, reader, files.get(name)] as const,
  ).find(([, , bytes]) => bytes !== undefined) ?? ["", readCtrf, undefined];
  if (report === undefined) {
    if (reward === undefined) return { outcome: null, tests: [], cause: "no_report" };
    const cause = reward.isConflict
      ? "report_conflict"
      : reward.value === null
        ? "unreadable_reward"
        : "no_report";
    return { outcome: reward.value, ...rewards, tests: [], cause };
  }
  const tests = report.length > FILE_LIMIT_BYTES ? undefined : read(report);
  if (tests === undefined)
    return { outcome: reward?.value ?? null, ...rewards, tests: [], cause: "unreadable_report" };
  if (tests.length === 0)
    return { outcome: reward?.value ?? 0, ...rewards, tests, cause: "collection_error" };
  const allPassed = tests.every(test => test.status === "passed");
  if (reward === undefined) return { outcome: allPassed ? 1 : 0, tests };
  if (reward.value === null) return { outcome: allPassed ? 1 : 0, tests, cause: "unreadable_reward" };
  const anyFailed = tests.some(test => test.status === "failed");
  const conflict = reward.isConflict || (reward.value >= 1 && anyFailed) || (reward.value <= 0 && allPassed);
  return { outcome: reward.value, ...rewards, tests, ...(conflict && { cause: "report_conflict" as const }) };
}

interface FoundReward {
  /** `null` when the tests wrote no finite number. */
  readonly value: number | null;
  readonly rewards?: Record<string, number>;
  /** Both files exist and disagree. */
  readonly isConflict: boolean;
}

/** A number. Like Harbor, we accept true and false too. */
const Rewards = z.record(
  z.string().max(200),
  z.union([z.number(), z.boolean().transform(value => (value ? 1 : 0))]),
);
const MOST_REWARDS = 100;

/** @returns undefined when the tests wrote no reward */
function readReward(files: ReadonlyMap<string, Uint8Array>): FoundReward | undefined {
  const [json, text] = REWARD_FILES.map(name => files.get(name));
  const written = text === undefined ? undefined : readNumber(text);
  if (json === undefined) {
    if (written === undefined) return undefined;
    return { value: written, ...(written !== null && { rewards: { reward: written } }), isConflict: false };
  }
  const parsed = json.length > FILE_LIMIT_BYTES ? undefined : Rewards.safeParse(parseJson(json)).data;
  if (parsed === undefined || Object.keys(parsed).length > MOST_REWARDS)
    return { value: null, isConflict: false };
  const value = scalar(parsed);
  const isConflict = value !== null && typeof written === "number" && written !== value;
  return { value, rewards: parsed, isConflict };
}

/**
 * Only the key `reward` counts; the others are diagnostics (verifiers#2224). Without that key, every key is a reward of
 * its own and the outcome is their mean.
 */
function scalar(rewards: Readonly<Record<string, number>>): number | null {
  const values = Object.values(rewards);
  if (rewards.reward !== undefined) return rewards.reward;
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function readNumber(text: Uint8Array): number | null {
  const trimmed = Buffer.from(text.subarray(0, 1000)).toString("utf8").trim();
  const value = Number(trimmed);
  return trimmed !== "" && Number.isFinite(value) ? value : null;
}
