// Everything that a start of a run would be refused for, looked at before anything is written: `t1 run start` and
// `t1 config check` ask here.
import { join } from "node:path";
import { playsDemonstrations, type RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { readUserText } from "../files/user-files.ts";
import { parseDockerfile } from "../image/dockerfile.ts";
import type { ImageBase } from "../image/images-file.ts";
import { StageList } from "../image/stage-list.ts";
import { assertCanRun } from "../rollout/prepare.ts";
import type { ImageServices } from "../rollout/task-image.ts";
import { type RunInputs, readRunInputs } from "../run/start-run.ts";
import { storedPoolName } from "../run/stored-pool.ts";
import { isHostDockerfile } from "../sandbox/bubblewrap/host-dockerfile.ts";
import type { SandboxImage, SandboxProvider } from "../sandbox/sandbox.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readDemonstration } from "../task/demonstration.ts";
import { loadTask } from "../task/load.ts";
import { openPool } from "../task/pool.ts";
import type { Task } from "../task/task.ts";

export interface StartServices {
  /** Undefined where there is none yet. */
  readonly store: ObjectStore | undefined;
  readonly sandboxes: SandboxProvider;
  readonly images: Pick<ImageServices, "images" | "builder">;
  /** Called with how many tasks were looked at. */
  readonly onTask?: (done: number, total: number) => void;
}

export interface StartCheck {
  readonly inputs: RunInputs;
  /** One line for each thing that was looked at and holds. */
  readonly lookedAt: readonly string[];
}

/** Problems of tasks that a message lists; the others are counted. */
const SHOWN_PROBLEMS = 5;
const PROBE_MS = 30_000;

/**
 * @param configFile its folder is where relative paths of the config start
 * @throws InputError for the first thing that does not hold; of tasks, for all of them
 */
export async function checkStart(
  { config, configFile }: { readonly config: RunConfig; readonly configFile: string },
  { store, sandboxes, images, onTask }: StartServices,
): Promise<StartCheck> {
  const inputs = await readRunInputs({ config, configFile }, { store });
  const { tasks, evaluation, agent } = inputs.config;
  const pools = [tasks.pool, ...(evaluation === undefined ? [] : [evaluation.pool])].filter(
    pool => storedPoolName(pool) === undefined, // those of a store were checked when they were stored
  );
  const loaded: Task[] = [];
  for (const pool of new Set(pools)) {
    const demonstrations = playsDemonstrations(config) && pool === tasks.pool;
    loaded.push(...(await checkPool(pool, demonstrations, images, onTask)));
  }
  const promptTokens = assertRoomForAnswers(loaded, inputs);
  const bases = images.builder.usesHostPrograms ? basesOf(loaded, images) : [];
  await probe(sandboxes, bases);
  const { names } = inputs.pool;
  return {
    inputs,
    lookedAt: [
      `policy  ${describeSource(inputs.config.policy)}: its architecture, weights, tokenizer and chat template`,
      ...(inputs.critic === undefined ? [] : ["critic  its architecture and weights"]),
      `pool    ${inputs.pool.folder}: ${names.length} tasks load and can be run here`,
      ...(evaluation === undefined ? [] : [`pool    ${evaluation.pool}, for evaluations`]),
      `context the longest instruction is ${promptTokens} of ${agent.contextTokens} tokens`,
      `sandboxes ${sandboxes.name} sandboxes start${bases.length === 0 ? "" : `, also over ${bases.length} bases of the images file`}`,
    ],
  };
}

/** @throws InputError that lists the tasks which cannot be used */
async function checkPool(
  folder: string,
  demonstrations: boolean,
  images: StartServices["images"],
  onTask: StartServices["onTask"],
): Promise<readonly Task[]> {
  const pool = await openPool(folder);
  const tasks: Task[] = [];
  const problems: string[] = [];
  for (const [index, name] of pool.names.entries()) {
    try {
      const task = await loadTask(join(pool.folder, name));
      assertCanRun(task, images);
      if (demonstrations) await readDemonstration(task.folder);
      tasks.push(task);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(error.message);
    }
    onTask?.(index + 1, pool.names.length);
  }
  if (problems.length === 0) return tasks;
  const more = problems.length > SHOWN_PROBLEMS ? [`and ${problems.length - SHOWN_PROBLEMS} more`] : [];
  throw new InputError(
    `${problems.length} of ${pool.names.length} tasks of the pool cannot be used: ${pool.folder}\n${[...problems.slice(0, SHOWN_PROBLEMS), ...more].join("\n")}\n  fix: correct them or take them out; t1 tasks check ${folder} names all`,
  );
}

/**
 * A protocol says more than the instruction, so this finds only what cannot work in any case.
 *
 * @returns tokens of the longest opening
 * @throws InputError when an instruction leaves no room for an answer
 */
function assertRoomForAnswers(tasks: readonly Task[], { chat, config: { agent } }: RunInputs): number {
  let longest = 0;
  for (const { folder, steps } of tasks) {
    const tokens = chat.opening(steps[0].instruction).length;
    longest = Math.max(longest, tokens);
    if (tokens < agent.contextTokens) continue;
    throw new InputError({
      what: "the instruction of a task leaves no room for an answer",
      where: folder,
      expected: `a prompt below agent.contextTokens = ${agent.contextTokens} tokens, got ${tokens}`,
      fix: "raise agent.contextTokens, or take the task out of the pool",
    });
  }
  return longest;
}

/** What the images file has for the bases of the tasks' Dockerfiles, each once. @throws InputError for one it has not */
function basesOf(tasks: readonly Task[], { images }: StartServices["images"]): readonly ImageBase[] {
  const bases = new Map<string, ImageBase>();
  for (const { environment, folder } of tasks) {
    if (environment.kind === "compose") continue; // needs another kind of sandboxes
    const { dockerfile } = environment;
    if (environment.kind === "image" && (dockerfile === undefined || images.find(environment.image))) {
      const base = images.base(environment.image, `${folder}/task.toml`);
      bases.set(base.folder, base);
    } else if (dockerfile !== undefined && !isHostDockerfile(dockerfile)) {
      const text = readUserText(dockerfile, { what: "the Dockerfile", expected: "a text file" });
      for (const { name, where } of new StageList(parseDockerfile(text, dockerfile)).bases()) {
        const base = images.base(name, where);
        bases.set(base.folder, base);
      }
    }
  }
  return [...bases.values()];
}

/** Starts one sandbox over each base, or over this machine's programs. @throws InputError when one cannot start here */
async function probe(sandboxes: SandboxProvider, bases: readonly ImageBase[]): Promise<void> {
  if (sandboxes.name === "docker") return; // the engine has answered; its images are pulled or built later
  const images: readonly SandboxImage[] =
    bases.length === 0
      ? [{ kind: "host", files: [] }]
      : bases.map(({ folder }) => ({ kind: "root", folder, files: [] }));
  for (const [index, image] of images.entries()) {
    const spec = { image, workdir: "/", env: {}, network: "none", diskBytes: 1 << 20 } as const;
    const lease = {
      id: `check-start/${process.pid}/${index}`,
      generation: 1,
      deadlineMs: Date.now() + PROBE_MS,
    };
    const sandbox = await sandboxes.create(spec, lease);
    await sandbox.exec("true", { timeoutMs: PROBE_MS }).finally(() => sandbox[Symbol.asyncDispose]());
  }
}

function describeSource(policy: RunConfig["policy"]): string {
  if (policy === undefined) return "a new model";
  return typeof policy === "string" ? policy : `of run ${policy.run}`;
}
