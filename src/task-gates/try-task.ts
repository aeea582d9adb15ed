// One try at a task outside of any run, by whoever plays: each step is set up, played, and graded by the real verifier.
import { InputError } from "../failure/errors.ts";
import { gradeStep } from "../rollout/grade.ts";
import { inPhase } from "../rollout/phase-network.ts";
import type { PreparedTask } from "../rollout/prepare.ts";
import type { PreparedStep } from "../rollout/prepare-steps.ts";
import { runSolution } from "../rollout/run-solution.ts";
import { setUpStep } from "../rollout/set-up-step.ts";
import { inTaskSandbox } from "../rollout/task-sandbox.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import type { VerifierMode, VerifierRun } from "../verifier/run-verifier.ts";
import { passesGate } from "../verifier/step-rewards.ts";

export interface TriedStep {
  /** undefined in a task without steps */
  readonly name: string | undefined;
  readonly run: VerifierRun;
}

/** Plays one step in a sandbox that has what an agent's commands have. @returns why it could not be played */
export type Play = (sandbox: Sandbox, step: PreparedStep, index: number) => Promise<string | undefined>;

export interface TryInput {
  readonly mode: VerifierMode;
  /** Index of the first step that is played; those before it are done by their solutions. */
  readonly from: number;
  /** Time for each step where it is not the task's. */
  readonly agentMs?: number;
}

/** Nothing is done, or what the solution does. */
export const AGENTS = {
  nop: () => async () => undefined,
  oracle:
    ({ task }: PreparedTask): Play =>
    (sandbox, step) =>
      runSolution(sandbox, task, step),
} as const satisfies Record<string, (prepared: PreparedTask) => Play>;

/**
 * Steps end at the first gate that is not passed.
 *
 * @throws InputError when the task cannot be played so; Failure as runVerifier does
 */
export async function tryTask(
  prepared: PreparedTask,
  play: Play,
  { mode, from, agentMs }: TryInput,
  sandboxes: SandboxProvider,
): Promise<readonly TriedStep[]> {
  const { task, spec, steps } = prepared;
  const refuse = (what: string): never => {
    throw new InputError({ what, where: task.folder, fix: "t1 tasks check names what is wrong with a task" });
  };
  const options = { purpose: "try", ...(agentMs !== undefined && { agentMs }) };
  const tried = await inTaskSandbox(prepared, options, sandboxes, async sandbox => {
    const graded: TriedStep[] = [];
    for (const [index, step] of steps.entries()) {
      const { name, minReward } = step.step;
      const problem =
        (await setUpStep(sandbox, step, spec.workdir)) ??
        (await (index < from ? AGENTS.oracle(prepared) : play)(sandbox, step, index));
      if (problem !== undefined) refuse(name === undefined ? problem : `step ${name}: ${problem}`);
      if (index < from) continue;
      const run = await gradeStep(sandbox, { prepared, index, mode, keepFiles: false }, { sandboxes });
      graded.push({ name, run });
      if (!passesGate(run.report, minReward)) break;
    }
    return graded;
  });
  return "unhealthy" in tried ? refuse(`the sandbox is not healthy: ${tried.unhealthy}`) : tried;
}

/** @returns a step's sandbox as its agent's commands have it */
export function asAgent(sandbox: Sandbox, { networks }: PreparedStep): Sandbox {
  return inPhase(sandbox, networks.agent);
}
