// Makes a planned task ready to run: checks that it is still the planned one and that the sandboxes at hand can run it,
// so that a task which cannot be run is named before any episode starts.
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { readHostDockerfile } from "../sandbox/bubblewrap/host-dockerfile.ts";
import type { SandboxSpec } from "../sandbox/sandbox.ts";
import { readDemonstration } from "../task/demonstration.ts";
import { loadTask } from "../task/load.ts";
import { resolveEnv } from "../task/resolve-env.ts";
import type { EnvironmentSettings, EnvironmentSource, Task } from "../task/task.ts";
import { type PreparedStep, prepareSteps } from "./prepare-steps.ts";
import type { PlannedEpisode } from "./records.ts";

export interface PreparedTask {
  readonly task: Task;
  readonly spec: SandboxSpec;
  readonly steps: readonly [PreparedStep, ...PreparedStep[]];
  /** Commands of the task's demonstration, when they were asked for. */
  readonly demonstration?: readonly string[];
}

/** Room for what an episode writes, where its task does not say: Harbor leaves it to the sandbox. */
const DISK_BYTES = 64 << 20;

/** @throws InputError naming the task and what it needs that cannot be had here */
export async function prepareTask(
  folder: string,
  { demonstration }: { readonly demonstration: boolean },
): Promise<PreparedTask> {
  const task = await loadTask(folder);
  const refuse = (what: string, expected: string): never => {
    throw new InputError({
      what: `the task ${what}`,
      where: folder,
      expected,
      fix: "leave it out of the pool",
    });
  };
  const networks = task.steps.flatMap(({ agent, verifier }) => [agent.network, verifier.network]);
  for (const { kind } of [task.config.environment.network, ...networks]) {
    if (kind !== "no-network") refuse(`wants network access (${kind})`, 'network_mode = "no-network"');
  }
  const spec = sandboxSpec(task, task.environment, task.config.environment);
  return {
    task,
    spec,
    steps: await prepareSteps(task, spec, ({ source, settings }) => sandboxSpec(task, source, settings)),
    ...(demonstration && { demonstration: await readDemonstration(folder) }),
  };
}

/** Prepares every task of a plan once. @param onTask called after each, for progress */
export async function prepare(
  poolFolder: string,
  plan: readonly PlannedEpisode[],
  options: { readonly demonstration: boolean },
): Promise<ReadonlyMap<string, PreparedTask>> {
  const planned = new Map(plan.map(({ task, taskHash }) => [task, taskHash]));
  const prepared = await Promise.all(
    [...planned.keys()].map(
      async name => [name, await prepareTask(join(poolFolder, name), options)] as const,
    ),
  );
  for (const [name, { task }] of prepared) {
    if (task.hashes.task === planned.get(name)) continue;
    throw new InputError({
      what: "a task changed after it was planned",
      where: task.folder,
      expected: `expected hash ${planned.get(name)}, got ${task.hashes.task}`,
      fix: "restore the pool, or start a new run",
    });
  }
  return new Map(prepared);
}

function sandboxSpec(
  { folder }: Task,
  environment: EnvironmentSource,
  settings: EnvironmentSettings,
): SandboxSpec {
  if (environment.kind !== "dockerfile") {
    throw new InputError({
      what: `the task is built from ${environment.kind === "image" ? "an image" : "docker-compose"}`,
      where: folder,
      expected: "environment/Dockerfile",
      fix: "leave it out of the pool",
    });
  }
  const { workdir, files, env } = readHostDockerfile(environment.dockerfile, environment.folder);
  return {
    image: { kind: "host", files },
    workdir: settings.workdir ?? workdir,
    env: { ...env, ...resolveEnv(settings.env, process.env, `${folder}/task.toml: environment.env`) },
    network: "none",
    diskBytes: settings.storageBytes ?? DISK_BYTES,
  };
}
