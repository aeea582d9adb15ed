// Runs a step's reference solution, as an agent that knows the answer would.
import { join } from "node:path";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { packFolder } from "../sandbox/tar.ts";
import { resolveEnv } from "../task/resolve-env.ts";
import type { Task } from "../task/task.ts";
import { runScript } from "../verifier/run-script.ts";
import { inPhase } from "./phase-network.ts";
import type { PreparedStep } from "./prepare-steps.ts";

/** Where a task sets no time. */
export const SOLUTION_MS = 3_600_000;
const SHOWN_CHARACTERS = 200;

/** @returns why it could not be run to its end; how it ended does not matter */
export async function runSolution(
  sandbox: Sandbox,
  task: Task,
  { step, networks }: PreparedStep,
): Promise<string | undefined> {
  if (step.solutionFolder === undefined) return "the task has no solution";
  const uploaded = await sandbox.upload(await packSolution(task, step.solutionFolder), "/solution");
  if ("refused" in uploaded) return `the solution does not fit into the sandbox: ${uploaded.refused}`;
  const { end, stdout } = await runScript(inPhase(sandbox, networks.agent), "/solution/solve.sh", {
    timeoutMs: step.agent.timeoutMs ?? SOLUTION_MS,
    env: resolveEnv(task.config.solutionEnv, process.env, `${task.folder}/task.toml: solution.env`),
    outputLimitBytes: 4096,
  });
  if (end.kind === "exited") return undefined;
  const how = end.kind === "timed-out" ? "too slow" : `killed by ${end.signal}`;
  return `the solution was ${how}: ${capturedText(stdout).slice(-SHOWN_CHARACTERS)}`;
}

function packSolution({ folder, ignored }: Task, solution: string): Promise<Uint8Array> {
  const left = new Set(ignored.map(path => join(folder, path)));
  return packFolder(solution, path => left.has(path));
}
