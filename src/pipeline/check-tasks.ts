// The gates that a task has to pass before it trains anyone: it loads, it can be run here, doing nothing earns nothing,
// its reference solution passes twice, and its tests are not lying about.
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { packFolder } from "../sandbox/tar.ts";
import { GENERATOR } from "../task/generate/write-task.ts";
import { resolveEnv } from "../task/resolve-env.ts";
import type { Task } from "../task/task.ts";
import type { VerifierMode, VerifierRun } from "../verifier/run-verifier.ts";
import { gradeStep } from "./grade.ts";
import { awaitHealthy } from "./healthcheck.ts";
import { inPhase } from "./phase-network.ts";
import { type PreparedTask, prepareTask } from "./prepare.ts";
import type { PreparedStep } from "./prepare-steps.ts";
import { setUpStep } from "./set-up-step.ts";
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
  {
    sandboxes,
    images,
    mode = "hardened",
  }: {
    readonly sandboxes: SandboxProvider;
    readonly images: ImageServices;
    readonly mode?: VerifierMode;
  },
): Promise<TaskCheck> {
  const verify = (sandbox: Sandbox, task: PreparedTask, index: number): Promise<VerifierRun> =>
    gradeStep(sandbox, { prepared: task, index, mode, keepFiles: false }, { sandboxes });
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
      ...(await verify(sandbox, prepared, 0)),
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
      const unhealthy = await whyUnhealthy(sandbox, prepared);
      if (unhealthy !== undefined) return unhealthy;
      for (const [index, step] of prepared.steps.entries()) {
        const problem =
          (await setUpStep(sandbox, step, prepared.spec.workdir)) ?? (await solve(sandbox, task, step));
        const why = problem ?? whyNotPassed(await verify(sandbox, prepared, index));
        if (why !== undefined) return prepared.steps.length === 1 ? why : `step ${step.step.name}: ${why}`;
      }
      return undefined;
    });
    if (solved !== undefined) return fail(gate, solved, counts);
  }
  return { ...facts, ...counts, passed: true };
}

async function inSandbox<T>(
  { task, spec, steps }: PreparedTask,
  sandboxes: SandboxProvider,
  purpose: string,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const durations = steps.map(
    ({ step }) => (step.agent.timeoutMs ?? SOLUTION_MS) + 4 * step.verifier.timeoutMs,
  );
  const deadlineMs = Date.now() + durations.reduce((sum, ms) => sum + ms, LEASE_SLACK_MS);
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

/** Where a task sets no time. */
const SOLUTION_MS = 3_600_000;
const LEASE_SLACK_MS = 600_000;

/** By bash where there is one, as Harbor does: it runs a script that names no shell by itself. */
const SOLVE =
  "chmod +x /solution/solve.sh && exec 2>&1 && if command -v bash >/dev/null; then exec bash -c /solution/solve.sh; else exec /solution/solve.sh; fi";

/** Runs the reference solution. @returns why it could not be run */
async function solve(
  sandbox: Sandbox,
  task: Task,
  { step, networks }: PreparedStep,
): Promise<string | undefined> {
  if (step.solutionFolder === undefined) return "the task has no solution";
  const uploaded = await sandbox.upload(await packSolution(task, step.solutionFolder), "/solution");
  if ("refused" in uploaded) return `the solution does not fit into the sandbox: ${uploaded.refused}`;
  const result = await inPhase(sandbox, networks.agent).exec(SOLVE, {
    timeoutMs: step.agent.timeoutMs ?? SOLUTION_MS,
    env: resolveEnv(task.config.solutionEnv, process.env, `${task.folder}/task.toml: solution.env`),
    outputLimitBytes: 4096,
  });
  const { end } = result;
  if (end.kind === "exited") return undefined;
  return `the solution was ${end.kind === "timed-out" ? "too slow" : `killed by ${end.signal}`}: ${capturedText(result.stdout).slice(-200)}`;
}

function packSolution({ folder, ignored }: Task, solution: string): Promise<Uint8Array> {
  const left = new Set(ignored.map(path => join(folder, path)));
  return packFolder(solution, path => left.has(path));
}

function whyNotPassed({ report, tampering }: VerifierRun): string | undefined {
  const { outcome, tests, cause } = report;
  if (outcome === 1 && cause !== "report_conflict") return undefined;
  const leftOut = (tampering?.found ?? [])
    .filter(({ effect }) => effect === "left_out")
    .map(({ path }) => path);
  const failing = tests.filter(test => test.status !== "passed").map(test => test.name);
  return `outcome ${outcome}, expected 1${cause === undefined ? "" : ` (${cause})`}${failing.length > 0 ? `; not passing: ${failing.join(", ")}` : ""}${leftOut.length > 0 ? `; left out of the hardened verifier: ${leftOut.join(", ")} (verifier.mode shared keeps them)` : ""}`;
}
