// A sandbox of a task for one purpose outside of any run.
import { randomUUID } from "node:crypto";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { awaitHealthy } from "./healthcheck.ts";
import type { PreparedTask } from "./prepare.ts";
import { SOLUTION_MS } from "./run-solution.ts";

const LEASE_SLACK_MS = 600_000;

/**
 * Made, awaited until it is healthy, and disposed of when `work` has ended.
 *
 * @param options.agentMs time for each step instead of its agent's
 * @returns `unhealthy` with what the last check said
 */
export async function inTaskSandbox<T>(
  { task, spec, steps, healthcheck }: PreparedTask,
  { purpose, agentMs }: { readonly purpose: string; readonly agentMs?: number },
  sandboxes: SandboxProvider,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T | { readonly unhealthy: string }> {
  const durations = steps.map(
    ({ step }) => (agentMs ?? step.agent.timeoutMs ?? SOLUTION_MS) + 4 * step.verifier.timeoutMs,
  );
  const deadlineMs = Date.now() + durations.reduce((sum, ms) => sum + ms, LEASE_SLACK_MS);
  // Names of tasks repeat across corpora, and others may be at the same task.
  const id = `${purpose}.${task.name.replaceAll("/", ".")}.${randomUUID().slice(0, 8)}`;
  const sandbox = await sandboxes.create(spec, { id, generation: 1, deadlineMs });
  try {
    const unhealthy = healthcheck === undefined ? undefined : await awaitHealthy(sandbox, healthcheck);
    return unhealthy === undefined ? await work(sandbox) : { unhealthy };
  } finally {
    await sandbox[Symbol.asyncDispose]();
  }
}
