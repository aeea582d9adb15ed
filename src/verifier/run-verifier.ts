// Runs a task's tests after the agent is gone. Nothing of the agent's is used: its processes are ended, the log folder
// and the tests arrive fresh, and the script gets an environment of its own.
import { capturedBytes } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
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
/** Whatever the agent made of them. */
const FRESH_FOLDERS = [LOG_FOLDER, TESTS_FOLDER];
/** A tar archive without entries: its end, two empty blocks (POSIX pax, "ustar Interchange Format"). */
const NOTHING = new Uint8Array(1024);

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
  const startedAt = performance.now();
  const [first = NOTHING, ...others] = tests;
  const uploads = [
    () => sandbox.upload(first, TESTS_FOLDER, { emptied: FRESH_FOLDERS }),
    ...others.map(archive => () => sandbox.upload(archive, TESTS_FOLDER)),
  ];
  for (const upload of uploads) {
    const uploaded = await upload();
    if ("refused" in uploaded) {
      const durationMs = performance.now() - startedAt;
      const printed = new TextEncoder().encode(uploaded.refused);
      return failed("tests_not_placed", { exitCode: null, durationMs, printed });
    }
  }
  const script = `${TESTS_FOLDER}/test.sh`;
  const ran = await sandbox.exec(`chmod +x ${script} && exec 2>&1 && ${script}`, {
    timeoutMs,
    env,
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
  });
  const outcome = {
    exitCode: ran.end.kind === "exited" ? ran.end.exitCode : null,
    durationMs: ran.durationMs,
    printed: capturedBytes(ran.stdout),
  };
  if (ran.end.kind === "timed-out") return failed("verifier_timeout", outcome);
  const logs = await sandbox.download(LOG_FOLDER, LOG_LIMIT_BYTES);
  if ("missing" in logs) return failed("no_report", outcome);
  if ("oversized" in logs) return failed("report_too_large", outcome);
  if ("refused" in logs) return failed("unreadable_report", outcome);
  const files = await readTarFiles(logs.tar);
  const { exitCode, durationMs, printed } = outcome;
  const report = { ...readReport(files), exitCode, durationMs };
  return {
    report: { ...report, tests: [...report.tests] },
    files: new Map([...files, ["stdout.txt", printed]]),
  };
}

interface Outcome {
  readonly exitCode: number | null;
  readonly durationMs: number;
  /** What stands for it in the record. */
  readonly printed: Uint8Array;
}

function failed(cause: VerifierCause, { exitCode, durationMs, printed }: Outcome): VerifierRun {
  const report = { outcome: null, tests: [], cause, exitCode, durationMs };
  return { report, files: new Map([["stdout.txt", printed]]) };
}
