// Runs a task's test script once in a sandbox and reads its reports. The log folder and the tests are fresh, the script
// gets the image's environment and nothing of the agent's, and all processes that it started end with it.
import { Failure } from "../failure/errors.ts";
import { capturedBytes } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { readTarFiles } from "../sandbox/tar.ts";
import { KNOWN_FILES, readReport } from "./read-report.ts";
import type { VerifierCause, VerifierReport } from "./report.ts";
import { runScript } from "./run-script.ts";

export interface TestScript {
  /** Tar archives with the tests; later ones overwrite earlier ones. Empty when the image contains the tests. */
  readonly tests: readonly Uint8Array[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly timeoutMs: number;
}

export interface TestRun {
  readonly report: VerifierReport;
  /** Raw files for the record: reports, rewards and the script's output. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The script failed before its tests began. */
  readonly hasBootstrapFault: boolean;
  /** The script was killed. */
  readonly wasKilled: boolean;
}

export const LOG_FOLDER = "/logs/verifier";
export const TESTS_FOLDER = "/tests";
/** Limit of all files in the log folder together; we read no more. */
const LOG_LIMIT_BYTES = 16 << 20;
const OUTPUT_LIMIT_BYTES = 1 << 18;
/** Bytes of each file that the record keeps. */
const RECORD_LIMIT_BYTES = 1 << 20;
/** A tar archive without entries: its end, two empty blocks (POSIX pax, "ustar Interchange Format"). */
const NOTHING = new Uint8Array(1024);

/** @throws Failure when the sandbox is lost, SandboxBroken among them; the interruption's reason */
export async function runTests(
  sandbox: Sandbox,
  { tests, env, user, timeoutMs }: TestScript,
  interruption: AbortSignal | undefined,
): Promise<TestRun> {
  const startedAt = performance.now();
  // Removes whatever the agent made of them. Tests that come with the image stay.
  const emptied = tests.length === 0 ? [LOG_FOLDER] : [LOG_FOLDER, TESTS_FOLDER];
  const [first = NOTHING, ...others] = tests;
  const uploads = [
    () => sandbox.upload(first, tests.length === 0 ? LOG_FOLDER : TESTS_FOLDER, { emptied }),
    ...others.map(archive => () => sandbox.upload(archive, TESTS_FOLDER)),
  ];
  for (const upload of uploads) {
    const uploaded = await upload();
    if ("refused" in uploaded) {
      const durationMs = performance.now() - startedAt;
      const printed = new TextEncoder().encode(uploaded.refused);
      return failed("tests_not_placed", { exitCode: null, durationMs, printed, wasKilled: false });
    }
  }
  const ran = await runScript(sandbox, `${TESTS_FOLDER}/test.sh`, {
    writable: [LOG_FOLDER],
    ...{ timeoutMs, env, user },
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
    signal: interruption,
  });
  // Processes that the script started could still write into the reports.
  await sandbox.killAgents();
  const outcome = {
    exitCode: ran.end.kind === "exited" ? ran.end.exitCode : null,
    durationMs: ran.durationMs,
    printed: capturedBytes(ran.stdout),
    wasKilled: ran.end.kind === "signalled" || (ran.end.kind === "exited" && ran.end.exitCode > 128),
  };
  if (ran.end.kind === "timed-out") return failed("verifier_timeout", outcome);
  const logs = await sandbox.download(LOG_FOLDER, LOG_LIMIT_BYTES);
  if ("missing" in logs) return failed("no_report", outcome);
  if ("oversized" in logs) return failed("report_too_large", outcome);
  if ("refused" in logs) return failed("unreadable_report", outcome);
  const written = await readTarFiles(logs.tar);
  const read = readReport(written);
  const { exitCode, durationMs, printed, wasKilled } = outcome;
  // A script that fails before its tests often writes a reward of 0 anyway.
  const gaveNothing = read.tests.length === 0 && (read.outcome ?? 0) <= 0;
  return {
    report: { ...read, tests: [...read.tests], exitCode, durationMs },
    files: recorded(written, printed),
    hasBootstrapFault: gaveNothing && hasBootstrapFault(printed),
    wasKilled,
  };
}

/** The result of a run that could not begin. */
export function notRun(cause: VerifierCause, why: string): TestRun {
  const printed = new TextEncoder().encode(why);
  return failed(cause, { exitCode: null, durationMs: 0, printed, wasKilled: false });
}

/** Returns a failure that an agent can have caused, and throws any other error again. */
export function brokenSandbox(error: unknown): TestRun {
  if (error instanceof Failure && error.name === "SandboxBroken")
    return notRun("sandbox_broken", error.message);
  throw error;
}

interface Outcome {
  readonly exitCode: number | null;
  readonly durationMs: number;
  /** Its text in the record. */
  readonly printed: Uint8Array;
  readonly wasKilled: boolean;
}

function failed(cause: VerifierCause, { exitCode, durationMs, printed, wasKilled }: Outcome): TestRun {
  const report = { outcome: null, tests: [], cause, exitCode, durationMs };
  const files = recorded(new Map(), printed);
  return { report, files, hasBootstrapFault: hasBootstrapFault(printed), wasKilled };
}

/** Keeps only files with a known name, because a file in a log folder may have any name. */
function recorded(
  written: ReadonlyMap<string, Uint8Array>,
  printed: Uint8Array,
): ReadonlyMap<string, Uint8Array> {
  const known = KNOWN_FILES.flatMap(name => {
    const bytes = written.get(name);
    return bytes === undefined ? [] : [[name, bytes.subarray(0, RECORD_LIMIT_BYTES)] as const];
  });
  return new Map([...known, ["stdout.txt", printed]]);
}

/** Signs in the output of a test script that it did not get to its tests: package tools, shells and kernels print them. */
const BOOTSTRAP_FAULTS: readonly RegExp[] = [
  /Could not get lock \/var\/lib\/(dpkg|apt)/,
  /dpkg was interrupted/,
  /Temporary failure (resolving|in name resolution)/i,
  /Could not resolve host/i,
  /E: (Failed to fetch|Unable to locate package|Unable to fetch)/,
  /No space left on device/,
  /(getcwd|shell-init|job-working-directory): .*(cannot access|No such file)/,
  /error: Failed to (fetch|download|install)/i,
  /Could not install packages due to an OSError/,
  /No matching distribution found for/,
  /Cannot allocate memory|fork: (retry: )?Resource temporarily unavailable|Cannot fork/,
  /(exec format error|cannot execute: required file not found|bad interpreter)/i,
  /(pytest|uvx?|pip3?|python3?|bash|curl): (command )?not found/,
];

/** @param printed stdout and stderr of the script */
function hasBootstrapFault(printed: Uint8Array): boolean {
  const text = Buffer.from(printed).toString("utf8");
  return BOOTSTRAP_FAULTS.some(fault => fault.test(text));
}
