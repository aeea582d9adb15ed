// Grades one step of a prepared task: what the verifier is given, and the leases of the sandboxes it needs.
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import type { Sandbox, SandboxProvider, SandboxSpec } from "../sandbox/sandbox.ts";
import { LOG_FOLDER, TESTS_FOLDER } from "../verifier/run-tests.ts";
import {
  runVerifier,
  type VerifierMode,
  type VerifierRun,
  type VerifierServices,
} from "../verifier/run-verifier.ts";
import { inPhase } from "./phase-network.ts";
import type { PreparedTask } from "./prepare.ts";
import type { PreparedStep } from "./prepare-steps.ts";

export interface GradeInput {
  readonly prepared: PreparedTask;
  /** Of the step. */
  readonly index: number;
  readonly mode: RunConfig["verifier"]["mode"];
  readonly keepFiles: boolean;
}

export interface GradeServices extends Pick<VerifierServices, "interruption"> {
  readonly sandboxes: Pick<SandboxProvider, "create">;
}

/** @throws as runVerifier does */
export async function gradeStep(
  sandbox: Sandbox,
  { prepared: { spec, steps }, index, mode, keepFiles }: GradeInput,
  { sandboxes, interruption }: GradeServices,
): Promise<VerifierRun> {
  const prepared = steps[index] ?? steps[0];
  assertOneNetwork(prepared, spec, mode);
  const { step, networks, tests, verifierEnv, verifierSpec } = prepared;
  const { timeoutMs, user, collect } = step.verifier;
  const isOfMain = ({ service = "main" }: { readonly service?: string | undefined }): boolean =>
    service === "main";
  let count = 0;
  const run = await runVerifier(
    inPhase(sandbox, networks.verifier),
    {
      mode: modeOf(prepared, mode),
      script: { tests, env: verifierEnv, user: user === undefined ? "root" : `${user}`, timeoutMs },
      spec,
      verifierSpec,
      collect: collect.filter(isOfMain),
      artifacts: step.artifacts.filter(isOfMain),
      keepFiles,
    },
    {
      sandboxes: { create: async (...args) => inPhase(await sandboxes.create(...args), networks.verifier) },
      nextLease: () => {
        count += 1;
        const { id, generation, deadlineMs } = sandbox.lease;
        return { id: `${id}.step${index}.verifier${count}`, generation, deadlineMs };
      },
      interruption,
    },
  );
  // The agent goes on where the tests of this step were: it must not find them.
  if (modeOf(prepared, mode) === "shared" && index + 1 < steps.length && !run.isBrokenByAgent)
    await sandbox.upload(NOTHING, LOG_FOLDER, { emptied: [LOG_FOLDER, TESTS_FOLDER] });
  return run;
}

/** Tests that run among the agent's own commands have the network of their container. */
function assertOneNetwork(step: PreparedStep, { image, network }: SandboxSpec, mode: VerifierMode): void {
  const { verifier } = step.networks;
  if (image.kind !== "docker" || modeOf(step, mode) !== "shared" || network === verifier.network) return;
  throw new InputError({
    what: `agent and tests have one container, but not the same network: ${network} and ${verifier.network}`,
    where: "verifier.mode shared",
    expected: "the same network for both in the images file and in the task",
    fix: "use verifier.mode hardened, or give both the same",
  });
}

/** A tar archive without entries. */
const NOTHING = new Uint8Array(1024);

/** A task that asks for a separate verifier has one, whatever the run's setting. */
export function modeOf({ step }: PreparedStep, configured: VerifierMode): VerifierMode {
  return step.verifier.place.kind === "separate" ? "separate" : configured;
}
