// Before the agent starts on a step that brings files along.
import { Failure } from "../failure/errors.ts";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { PreparedStep } from "./prepare-steps.ts";

const SETUP_TIMEOUT_MS = 600_000;

/** Files of the step go to the working directory, and its setup.sh runs there. @returns why that failed */
export async function setUpStep(
  sandbox: Sandbox,
  step: PreparedStep,
  workdir: string,
): Promise<string | undefined> {
  try {
    return await setUp(sandbox, step, workdir);
  } catch (error) {
    if (error instanceof Failure && error.name === "SandboxBroken") return error.message;
    throw error;
  }
}

async function setUp(
  sandbox: Sandbox,
  { workdir: files }: PreparedStep,
  workdir: string,
): Promise<string | undefined> {
  if (files === undefined) return undefined;
  const uploaded = await sandbox.upload(files, workdir);
  if ("refused" in uploaded) return uploaded.refused;
  const { end, stdout } = await sandbox.exec("[ ! -e setup.sh ] || { exec 2>&1; bash ./setup.sh; }", {
    timeoutMs: SETUP_TIMEOUT_MS,
    outputLimitBytes: 4096,
  });
  if (end.kind === "exited" && end.exitCode === 0) return undefined;
  return `setup.sh: ${JSON.stringify(end)}: ${capturedText(stdout).slice(-300)}`;
}
