// What a task asks of a deployment, kept in the index of a stored pool: preflight says what a deployment cannot give
// before anything is built or started.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { taskSize } from "../sandbox/fargate/task-size.ts";
import type { Task } from "../task/task.ts";

export const TaskNeeds = z.strictObject({
  cpus: z.number().optional(),
  memoryBytes: z.number().optional(),
  storageBytes: z.number().optional(),
  /** Of agents or tests. */
  network: z.boolean(),
  /** Containers beside the sandbox (docker-compose). */
  services: z.boolean(),
});
export type TaskNeeds = z.infer<typeof TaskNeeds>;

export function needsOf({ environment, config, steps }: Task): TaskNeeds {
  const { cpus, memoryBytes, storageBytes } = config.environment;
  return {
    ...(cpus !== undefined && { cpus }),
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(storageBytes !== undefined && { storageBytes }),
    network: steps.some(
      ({ agent, verifier }) => agent.network.kind !== "no-network" || verifier.network.kind !== "no-network",
    ),
    services: environment.kind === "compose",
  };
}

/** @returns one sentence per kind of problem, with an example */
export function problemsOfNeeds(
  tasks: ReadonlyMap<string, TaskNeeds>,
  { hasProxy }: { readonly hasProxy: boolean },
): readonly string[] {
  const found = new Map<string, string[]>();
  for (const [name, needs] of tasks)
    for (const problem of problemsOf(needs, hasProxy))
      found.set(problem, [...(found.get(problem) ?? []), name]);
  return [...found].map(
    ([problem, names]) => `${names.length} of ${tasks.size} tasks ${problem}, such as ${names[0]}`,
  );
}

function problemsOf(needs: TaskNeeds, hasProxy: boolean): string[] {
  const problems: string[] = [];
  if (needs.services) problems.push("run several containers, which a sandbox on Fargate is not");
  if (needs.network && !hasProxy)
    problems.push("want the network, which this deployment's sandboxes have not (network.egress)");
  try {
    taskSize({ ...needs, diskBytes: needs.storageBytes ?? 0 });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    problems.push("want more processors, memory or disk than a task on Fargate can have");
  }
  return problems;
}
