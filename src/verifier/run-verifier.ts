// Runs a task's tests after the agent is gone. Nothing of the agent's is used: its processes are ended, the log folder
// and the tests arrive fresh, and the script gets an environment of its own.
import { capturedBytes } from "../sandbox/captured-text.ts";
import type { ExecResult, Sandbox } from "../sandbox/sandbox.ts";
import { readTarFiles } from "../sandbox/tar.ts";
import { readReport } from "./read-report.ts";
import type { VerifierCause, VerifierReport } from "./report.ts";

export interface VerifierInput {
  /** Tar archives with the tests, in the order in which they go over each other. */
  readonly tests: readonly Uint8Array[];
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface VerifierRun {
  readonly report: VerifierReport;
  /** Raw files for the record: those of the log folder, and what the script printed. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

const LOG_FOLDER = "/logs/verifier";
const TESTS_FOLDER = "/tests";
/** All files of the log folder together; more is cut off as untrusted. */
const LOG_LIMIT_BYTES = 1 << 20;
const OUTPUT_LIMIT_BYTES = 1 << 16;
const PLACE_TIMEOUT_MS = 30_000;

/** Empties both folders whatever the agent made of them: links, mounts in the way and left-overs included. */
const FRESH_FOLDERS = [LOG_FOLDER, TESTS_FOLDER]
  .map(
    folder =>
      `rm -rf ${folder} 2>/dev/null; mkdir -p ${folder} && [ ! -L ${folder} ] && [ -z "$(ls -A ${folder})" ]`,
  )
  .map(step => `{ ${step}; }`)
  .join(" && ");

/** @throws Failure when the sandbox itself is lost; whatever the agent can have caused is a report with a cause */
export async function runVerifier(
  sandbox: Sandbox,
  { tests, env, timeoutMs }: VerifierInput,
): Promise<VerifierRun> {
  await sandbox.killAgents();
  const first = await runOnce(sandbox, tests, env, timeoutMs);
  // A contradiction, or tests that hang, may be a passing fault: they are run once more before they count.
  const again = first.report.cause === "report_conflict" || first.report.cause === "verifier_timeout";
  if (!again) return first;
  await sandbox.killAgents();
  return runOnce(sandbox, tests, env, timeoutMs);
}

async function runOnce(
  sandbox: Sandbox,
  tests: readonly Uint8Array[],
  env: VerifierInput["env"],
  timeoutMs: number,
): Promise<VerifierRun> {
  const placed = await sandbox.exec(FRESH_FOLDERS, { timeoutMs: PLACE_TIMEOUT_MS, cwd: "/" });
  if (placed.end.kind !== "exited" || placed.end.exitCode !== 0) return failed("tests_not_placed", placed);
  for (const archive of tests) {
    const uploaded = await sandbox.upload(archive, TESTS_FOLDER);
    if ("refused" in uploaded) return failed("tests_not_placed", placed);
  }
  const script = `${TESTS_FOLDER}/test.sh`;
  const ran = await sandbox.exec(`chmod +x ${script} && exec 2>&1 && ${script}`, {
    timeoutMs,
    env,
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
  });
  if (ran.end.kind === "timed-out") return failed("verifier_timeout", ran);
  const logs = await sandbox.download(LOG_FOLDER, LOG_LIMIT_BYTES);
  if ("missing" in logs) return failed("no_report", ran);
  if ("oversized" in logs) return failed("report_too_large", ran);
  if ("refused" in logs) return failed("unreadable_report", ran);
  const files = await readTarFiles(logs.tar);
  const report = { ...readReport(files), exitCode: exitCodeOf(ran), durationMs: ran.durationMs };
  return {
    report: { ...report, tests: [...report.tests] },
    files: new Map([...files, ["stdout.txt", capturedBytes(ran.stdout)]]),
  };
}

function failed(cause: VerifierCause, result: ExecResult): VerifierRun {
  const report = {
    outcome: null,
    tests: [],
    cause,
    exitCode: exitCodeOf(result),
    durationMs: result.durationMs,
  };
  return { report, files: new Map([["stdout.txt", capturedBytes(result.stdout)]]) };
}

function exitCodeOf({ end }: ExecResult): number | null {
  return end.kind === "exited" ? end.exitCode : null;
}
