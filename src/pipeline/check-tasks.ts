// The gates that a task has to pass before it trains anyone: it loads, it can be run here, doing nothing earns nothing,
// its reference solution passes twice, and its tests are not lying about.
import { InputError } from "../failure/errors.ts";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { packFolder } from "../sandbox/tar.ts";
import { GENERATOR } from "../task/generate/write-task.ts";
import { resolveEnv } from "../task/resolve-env.ts";
import type { VerifierReport } from "../verifier/report.ts";
import { runVerifier, type VerifierRun } from "../verifier/run-verifier.ts";
import { awaitHealthy } from "./healthcheck.ts";
import { inPhase } from "./phase-network.ts";
import { type PreparedTask, prepareTask } from "./prepare.ts";
import type { ImageServices } from "./task-image.ts";

type Gate =
  | "loads"
  | "can be run here"
  | "image builds"
  | "is healthy"
  | "tests hidden"
  | "doing nothing fails"
  | "solution passes"
  | "solution passes again";

export interface TaskCheck {
  readonly task: string;
  readonly passed: boolean;
  /** The first gate that did not hold, and why. */
  readonly failed?: { readonly gate: Gate; readonly reason: string };
  /** Assertions, and how many of them hold before anything was done (P₀). */
  readonly assertions?: number;
  readonly passedByNothing?: number;
  readonly hash?: string;
  readonly warnings: readonly string[];
}

/** Checks one task folder. Whatever is wrong with the task is in the result; only failures of the machine are thrown. */
export async function checkTask(
  folder: string,
  { sandboxes, images }: { readonly sandboxes: SandboxProvider; readonly images: ImageServices },
): Promise<TaskCheck> {
  let prepared: PreparedTask;
  let gate: Gate = "loads";
  const onPart = (part: Gate): void => {
    gate = part;
  };
  try {
    prepared = await prepareTask(folder, { ...images, demonstration: false, onPart });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { task: folder, passed: false, failed: { gate, reason: error.message }, warnings: [] };
  }
  const { task } = prepared;
  const facts = { task: task.name, hash: task.hashes.task, warnings: task.warnings };
  const fail = (gate: Gate, reason: string, more: Partial<TaskCheck> = {}): TaskCheck => ({
    ...facts,
    ...more,
    passed: false,
    failed: { gate, reason },
  });

  const untouched = await inSandbox(prepared, sandboxes, "nothing", async sandbox => {
    const unhealthy = await whyUnhealthy(sandbox, prepared);
    if (unhealthy !== undefined) return unhealthy;
    const hidden = await sandbox.exec('[ -z "$(ls -A /tests /solution 2>/dev/null)" ]', {
      timeoutMs: 10_000,
      cwd: "/",
    });
    return {
      hidden: hidden.end.kind === "exited" && hidden.end.exitCode === 0,
      ...(await verify(sandbox, prepared)),
    };
  });
  if (typeof untouched === "string") return fail("is healthy", untouched);
  if (!untouched.hidden) return fail("tests hidden", "the image holds files in /tests or /solution");
  const { tests, outcome, cause } = untouched.report;
  const counts = {
    assertions: tests.length,
    passedByNothing: tests.filter(test => test.status === "passed").length,
  };
  if (outcome !== 0)
    return fail(
      "doing nothing fails",
      `outcome ${outcome}, expected 0${cause === undefined ? "" : ` (${cause})`}`,
      counts,
    );
  if (task.metadata.generator === GENERATOR && counts.passedByNothing > 0) {
    const held = tests.filter(test => test.status === "passed").map(test => test.name);
    return fail("doing nothing fails", `assertions hold untouched: ${held.join(", ")}`, counts);
  }
  for (const gate of ["solution passes", "solution passes again"] as const) {
    const solved = await inSandbox(prepared, sandboxes, gate.replaceAll(" ", "-"), async sandbox => {
      const problem = (await whyUnhealthy(sandbox, prepared)) ?? (await solve(sandbox, prepared));
      return problem === undefined ? whyNotPassed((await verify(sandbox, prepared)).report) : problem;
    });
    if (solved !== undefined) return fail(gate, solved, counts);
  }
  return { ...facts, ...counts, passed: true };
}

async function inSandbox<T>(
  { task, spec, step }: PreparedTask,
  sandboxes: SandboxProvider,
  purpose: string,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const deadlineMs = Date.now() + (step.agent.timeoutMs ?? 3_600_000) + 4 * step.verifier.timeoutMs + 600_000;
  const sandbox = await sandboxes.create(spec, {
    id: `check.${task.name.replaceAll("/", ".")}.${purpose}`,
    generation: 1,
    deadlineMs,
  });
  try {
    return await work(sandbox);
  } finally {
    await sandbox[Symbol.asyncDispose]();
  }
}

async function whyUnhealthy(sandbox: Sandbox, { healthcheck }: PreparedTask): Promise<string | undefined> {
  return healthcheck === undefined ? undefined : awaitHealthy(sandbox, healthcheck);
}

function verify(
  sandbox: Sandbox,
  { tests, verifierEnv, networks, step }: PreparedTask,
): Promise<VerifierRun> {
  return runVerifier(inPhase(sandbox, networks.verifier), {
    tests,
    env: verifierEnv,
    timeoutMs: step.verifier.timeoutMs,
  });
}

/** By bash where there is one, as Harbor does: it runs a script that names no shell by itself. */
const SOLVE =
  "chmod +x /solution/solve.sh && exec 2>&1 && if command -v bash >/dev/null; then exec bash -c /solution/solve.sh; else exec /solution/solve.sh; fi";

/** Runs the reference solution. @returns why it could not be run */
async function solve(sandbox: Sandbox, { task, step, networks }: PreparedTask): Promise<string | undefined> {
  if (step.solutionFolder === undefined) return "the task has no solution";
  const uploaded = await sandbox.upload(await packFolder(step.solutionFolder), "/solution");
  if ("refused" in uploaded) return `the solution does not fit into the sandbox: ${uploaded.refused}`;
  const result = await inPhase(sandbox, networks.agent).exec(SOLVE, {
    timeoutMs: step.agent.timeoutMs ?? 3_600_000,
    env: resolveEnv(task.config.solutionEnv, process.env, `${task.folder}/task.toml: solution.env`),
    outputLimitBytes: 4096,
  });
  const { end } = result;
  if (end.kind === "exited") return undefined;
  return `the solution was ${end.kind === "timed-out" ? "too slow" : `killed by ${end.signal}`}: ${capturedText(result.stdout).slice(-200)}`;
}

function whyNotPassed({ outcome, tests, cause }: VerifierReport): string | undefined {
  if (outcome === 1 && cause !== "report_conflict") return undefined;
  const failing = tests.filter(test => test.status !== "passed").map(test => test.name);
  return `outcome ${outcome}, expected 1${cause === undefined ? "" : ` (${cause})`}${failing.length > 0 ? `; not passing: ${failing.join(", ")}` : ""}`;
}
