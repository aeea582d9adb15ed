// Makes a planned task ready to run: checks that it is still the planned one and that the sandboxes at hand can run it,
// so that a task which cannot be run is named before any episode starts.
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import type { ImageBuilder } from "../image/image-builder.ts";
import type { Images, PhaseNetwork } from "../image/images-file.ts";
import type { PlannedEpisode } from "../run/records.ts";
import type { SandboxSpec } from "../sandbox/sandbox.ts";
import { readComposeFile } from "../task/compose-file.ts";
import { readDemonstration } from "../task/demonstration.ts";
import { loadTask } from "../task/load.ts";
import { resolveEnv } from "../task/resolve-env.ts";
import type { EnvironmentSettings, EnvironmentSource, Healthcheck, Task, TaskStep } from "../task/task.ts";
import { phaseNetwork } from "./phase-network.ts";
import { type PreparedStep, prepareSteps, type StepNetworks } from "./prepare-steps.ts";
import { type ImageServices, taskImage } from "./task-image.ts";

export interface PreparedTask {
  readonly task: Task;
  readonly spec: SandboxSpec;
  /** Has to succeed before anyone works in a sandbox. */
  readonly healthcheck: Healthcheck | undefined;
  readonly steps: readonly [PreparedStep, ...PreparedStep[]];
  /** Commands of the task's demonstration, when they were asked for. */
  readonly demonstration?: readonly string[];
}

export interface PrepareOptions extends ImageServices {
  readonly demonstration: boolean;
  /** Called before each part, for whoever names the one that fails. */
  readonly onPart?: (part: "loads" | "can be run here" | "image builds") => void;
}

/** Room for what an episode writes, where its task does not say: Harbor leaves it to the sandbox. */
const HOST_DISK_BYTES = 64 << 20;
/** The same over an image: tests install what they need. */
const IMAGE_DISK_BYTES = 4 * 2 ** 30;
/** Images that are built at the same time. */
const BUILDS_AT_ONCE = 4;

/** @throws InputError naming the task and what it needs that cannot be had here */
export async function prepareTask(folder: string, options: PrepareOptions): Promise<PreparedTask> {
  const { demonstration, onPart } = options;
  onPart?.("loads");
  const task = await loadTask(folder);
  onPart?.("can be run here");
  const networksOf = (step: TaskStep): StepNetworks => stepNetworks(step, options.images, folder);
  const networks = assertCanRun(task, options);
  const agentNetwork = widest(networks.map(({ agent }) => agent));
  const anyNetwork = widest(networks.flatMap(({ agent, verifier }) => [agent, verifier]));
  const specOf = async (source: EnvironmentSource, settings: EnvironmentSettings) => {
    const { image, workdir, env, healthcheck, services } = await taskImage(source, settings, options);
    const isContainer = image.kind === "docker";
    const user = task.steps[0].agent.user;
    const { memoryBytes, cpus } = settings;
    const spec: SandboxSpec = {
      image,
      workdir,
      env: { ...env, ...resolveEnv(settings.env, process.env, `${folder}/task.toml: environment.env`) },
      network: isContainer ? agentNetwork : anyNetwork,
      diskBytes: settings.storageBytes ?? (image.kind === "host" ? HOST_DISK_BYTES : IMAGE_DISK_BYTES),
      ...(isContainer && memoryBytes !== undefined && { memoryBytes }),
      ...(isContainer && cpus !== undefined && { cpus }),
      ...(services !== undefined && { services }),
      ...(isContainer && user !== undefined && { user: `${user}` }),
    };
    return { spec, healthcheck };
  };
  onPart?.("image builds");
  const { spec, healthcheck } = await specOf(task.environment, task.config.environment);
  const steps = await prepareSteps(task, spec, {
    specOf: async ({ source, settings }) => (await specOf(source, settings)).spec,
    networksOf,
  });
  return {
    task,
    spec,
    healthcheck,
    steps,
    ...(demonstration && { demonstration: await readDemonstration(folder) }),
  };
}

/**
 * Looks at everything that can keep a task from running here, short of building its image.
 *
 * @returns the networks of its steps
 * @throws InputError naming the task and what it needs that cannot be had here
 */
export function assertCanRun(
  task: Task,
  { images, builder }: Pick<ImageServices, "images" | "builder">,
): readonly StepNetworks[] {
  assertRunnable(task, builder);
  const networks = task.steps.map(step => stepNetworks(step, images, task.folder));
  if (task.environment.kind === "compose") assertServices(task, task.environment.composeFile, networks);
  return networks;
}

function stepNetworks({ agent, verifier }: TaskStep, images: Images, where: string): StepNetworks {
  return {
    agent: phaseNetwork("agent", agent.network, images, where),
    verifier: phaseNetwork("verifier", verifier.network, images, where),
  };
}

/** @throws InputError for what no sandbox of ours does yet, or none on this machine */
function assertRunnable(task: Task, builder: ImageBuilder): void {
  const { folder, environment, config, steps } = task;
  const refuse = (what: string, expected: string): never => {
    throw new InputError({
      what: `the task ${what}`,
      where: folder,
      expected,
      fix: "leave it out of the pool",
    });
  };
  if (environment.kind === "compose") {
    const file = environment.composeFile.slice(folder.length + 1);
    if (!builder.hasServices)
      refuse(
        `runs several containers (${file})`,
        "one container, which a sandbox of this kind is; docker has more",
      );
  }
  const { os, gpus, tpu } = config.environment;
  if (os !== "linux") refuse(`runs on ${os}`, "linux");
  if ((gpus ?? 0) > 0 || tpu !== undefined)
    refuse("wants a GPU or TPU", "a CPU, which is all that sandboxes have");
  const users = steps.flatMap(({ agent, verifier }) => [
    ["agent", agent.user] as const,
    ["verifier", verifier.user] as const,
  ]);
  for (const [who, user] of users) {
    if (builder.hasUsers || user === undefined || ["root", "0"].includes(`${user}`)) continue;
    refuse(
      `wants the ${who} to be user ${user}`,
      "root: one user is mapped into a bubblewrap sandbox; docker has the others",
    );
  }
  const [agent, ...others] = new Set(steps.map(step => step.agent.user));
  if (others.length > 0)
    refuse(`has steps whose agents are users ${[agent, ...others].join(", ")}`, "one user for all steps");
}

/** @throws InputError for what the containers of a docker-compose.yaml cannot have or be asked */
function assertServices(
  { folder, steps }: Task,
  composeFile: string,
  networks: readonly StepNetworks[],
): void {
  const refuse = (what: string, expected: string, fix: string): never => {
    throw new InputError({ what, where: folder, expected, fix });
  };
  const { services } = readComposeFile(composeFile, process.env);
  const foreign = steps
    .flatMap(({ verifier, artifacts }) => [...verifier.collect, ...artifacts])
    .find(({ service = "main" }) => service !== "main");
  if (foreign !== undefined)
    refuse(
      `the task collects what is in the service ${foreign.service}`,
      "what is in main",
      "leave it out of the pool",
    );
  const unequal = networks.find(({ agent, verifier }) => agent.network !== verifier.network);
  if (services.length > 0 && unequal !== undefined)
    refuse(
      `the task has services, and another network for its agent (${unequal.agent.network}) than for its tests (${unequal.verifier.network})`,
      "the same for both: all its containers share one",
      "give both the same in the images file, or leave it out of the pool",
    );
}

/** None of them, or what the phases that have a network have: it is the same for all of a kind. */
function widest(phases: readonly PhaseNetwork[]): PhaseNetwork["network"] {
  return phases.find(({ network }) => network !== "none")?.network ?? "none";
}

/** Prepares every task of a plan once. */
export async function prepare(
  poolFolder: string,
  plan: readonly PlannedEpisode[],
  options: PrepareOptions,
): Promise<ReadonlyMap<string, PreparedTask>> {
  const planned = new Map(plan.map(({ task, taskHash }) => [task, taskHash]));
  const prepared = new Map<string, PreparedTask>();
  const waiting = planned.keys();
  const work = async (): Promise<void> => {
    for (const name of waiting) prepared.set(name, await prepareTask(join(poolFolder, name), options));
  };
  await Promise.all(Array.from({ length: BUILDS_AT_ONCE }, work));
  for (const [name, { task }] of prepared) {
    if (task.hashes.task === planned.get(name)) continue;
    throw new InputError({
      what: "a task changed after it was planned",
      where: task.folder,
      expected: `expected hash ${planned.get(name)}, got ${task.hashes.task}`,
      fix: "restore the pool, or start a new run",
    });
  }
  return prepared;
}
