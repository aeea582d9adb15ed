// The gates that a task has to pass before it trains anyone: it loads, it can be run here, doing nothing earns nothing,
// its reference solution passes twice, and its tests are not lying about.
import { z } from "zod";
import { Failure, InputError } from "../failure/errors.ts";
import { gradeStep } from "../rollout/grade.ts";
import { type PreparedTask, prepareTask } from "../rollout/prepare.ts";
import { runSolution } from "../rollout/run-solution.ts";
import { setUpStep } from "../rollout/set-up-step.ts";
import type { ImageServices } from "../rollout/task-image.ts";
import { inTaskSandbox } from "../rollout/task-sandbox.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { GENERATOR } from "../task/generate/write-task.ts";
import type { VerifierMode, VerifierRun } from "../verifier/run-verifier.ts";

/** In the order in which they are tried. */
const GATES = [
  "loads",
  "can be run here",
  "image builds",
  "is healthy",
  "tests hidden",
  "doing nothing fails",
  "solution passes",
  "solution passes again",
] as const;
type Gate = (typeof GATES)[number];

export const TaskCheck = z.strictObject({
  task: z.string(),
  passed: z.boolean(),
  /** The first gate that did not hold, and why. */
  failed: z.strictObject({ gate: z.enum(GATES), reason: z.string() }).optional(),
  /** Assertions, and how many of them hold before anything was done (P₀). */
  assertions: z.int().optional(),
  passedByNothing: z.int().optional(),
  hash: z.string().optional(),
  warnings: z.array(z.string()).readonly(),
});
export type TaskCheck = z.infer<typeof TaskCheck>;

export interface CheckServices {
  readonly sandboxes: SandboxProvider;
  readonly images: ImageServices;
  readonly mode?: VerifierMode;
}

/**
 * Checks one task folder. Whatever is wrong with the task is in the result, also that its sandbox cannot be made, breaks,
 * or does not start its tests.
 *
 * @throws Failure of the machine
 */
export async function checkTask(
  folder: string,
  { sandboxes, images, mode = "hardened" }: CheckServices,
): Promise<TaskCheck> {
  let gate: Gate = "loads";
  let facts: Pick<TaskCheck, "task" | "hash" | "warnings"> = { task: folder, warnings: [] };
  const counts: Pick<TaskCheck, "assertions" | "passedByNothing"> = {};
  const fail = (reason: string): TaskCheck => ({
    ...facts,
    ...counts,
    passed: false,
    failed: { gate, reason },
  });
  const onPart = (part: Gate): void => {
    gate = part;
  };
  try {
    const prepared = await prepareTask(folder, { ...images, demonstration: false, onPart });
    const { task } = prepared;
    facts = { task: task.name, hash: task.hashes.task, warnings: task.warnings };
    const verify = (sandbox: Sandbox, index: number): Promise<VerifierRun> =>
      gradeStep(sandbox, { prepared, index, mode, keepFiles: false }, { sandboxes });

    gate = "is healthy";
    const untouched = await inTaskSandbox(
      prepared,
      { purpose: "check.nothing" },
      sandboxes,
      async sandbox => {
        gate = "tests hidden";
        if (!(await hidesTests(sandbox))) return { hidden: false as const };
        gate = "doing nothing fails";
        return { hidden: true as const, ...(await verify(sandbox, 0)) };
      },
    );
    if ("unhealthy" in untouched) return fail(untouched.unhealthy);
    if (!untouched.hidden) return fail("the image holds files in /tests or /solution");
    const { tests, outcome, cause } = untouched.report;
    const held = tests.filter(test => test.status === "passed").map(test => test.name);
    Object.assign(counts, { assertions: tests.length, passedByNothing: held.length });
    if (outcome !== 0)
      return fail(`outcome ${outcome}, expected 0${cause === undefined ? "" : ` (${cause})`}`);
    if (task.metadata.generator === GENERATOR && held.length > 0)
      return fail(`assertions hold untouched: ${held.join(", ")}`);

    for (const passing of ["solution passes", "solution passes again"] as const) {
      gate = passing;
      const purpose = `check.${passing.replaceAll(" ", "-")}`;
      const why = await inTaskSandbox(prepared, { purpose }, sandboxes, sandbox =>
        whyUnsolved(sandbox, prepared, verify),
      );
      if (why === undefined) continue;
      return fail(typeof why === "string" ? why : why.unhealthy);
    }
    return { ...facts, ...counts, passed: true };
  } catch (error) {
    if (isOfTask(error)) return fail(error.message);
    throw error;
  }
}

/** What a machine without fault would say too. */
function isOfTask(error: unknown): error is Error {
  if (error instanceof InputError) return true;
  return error instanceof Failure && ["SandboxBroken", "VerifierBootstrapFailed"].includes(error.name);
}

async function hidesTests(sandbox: Sandbox): Promise<boolean> {
  const look = '[ -z "$(ls -A /tests /solution 2>/dev/null)" ]';
  const { end } = await sandbox.exec(look, { timeoutMs: 10_000, cwd: "/" });
  return end.kind === "exited" && end.exitCode === 0;
}

async function whyUnsolved(
  sandbox: Sandbox,
  { task, spec, steps }: PreparedTask,
  verify: (sandbox: Sandbox, index: number) => Promise<VerifierRun>,
): Promise<string | undefined> {
  for (const [index, step] of steps.entries()) {
    const problem =
      (await setUpStep(sandbox, step, spec.workdir)) ?? (await runSolution(sandbox, task, step));
    const why = problem ?? whyNotPassed(await verify(sandbox, index));
    if (why !== undefined) return steps.length === 1 ? why : `step ${step.step.name}: ${why}`;
  }
  return undefined;
}

function whyNotPassed({ report, tampering, files }: VerifierRun): string | undefined {
  const { outcome, tests, cause } = report;
  if (outcome === 1 && cause !== "report_conflict") return undefined;
  const leftOut = (tampering?.found ?? [])
    .filter(({ effect }) => effect === "left_out")
    .map(({ path }) => path);
  const failing = tests.filter(test => test.status !== "passed").map(test => test.name);
  return `outcome ${outcome}, expected 1${cause === undefined ? "" : ` (${cause})`}${failing.length > 0 ? `; not passing: ${failing.join(", ")}` : ""}${leftOut.length > 0 ? `; left out of the hardened verifier: ${leftOut.join(", ")} (verifier.mode shared keeps them)` : ""}${lastLines(files)}`;
}

/** Lines of the tests' output that a reason ends with. */
const LAST_LINES = 12;

/** What the tests printed last: mostly why they failed, e.g. a host that they could not reach. */
function lastLines(files: VerifierRun["files"]): string {
  const printed = Buffer.from(files.get("stdout.txt") ?? []).toString("utf8");
  const lines = printed.split("\n").filter(line => line.trim() !== "");
  return lines.length === 0 ? "" : `\nthe tests printed last:\n${lines.slice(-LAST_LINES).join("\n")}`;
}
