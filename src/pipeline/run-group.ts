// Plays a group of a phase's episodes: what a driver does. What is finished stays finished, so a group may be played
// again by another driver after this one was ended at any point.
import { join } from "node:path";
import { createDemonstrator, NO_ROUTES } from "../agent/demonstrator.ts";
import { InputError } from "../failure/errors.ts";
import type { Sampler } from "../sampler/sampler.ts";
import type { SandboxProvider } from "../sandbox/sandbox.ts";
import { type PhasePrefix, parsePhase, policyPrefix } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openText } from "./collect.ts";
import { EVALUATION_ATTEMPTS } from "./evaluate.ts";
import { readPlan } from "./plan.ts";
import { prepare } from "./prepare.ts";
import { type RunEpisodesServices, runEpisodes } from "./run-episodes.ts";
import { readRun } from "./run-record.ts";
import { fetchTasks, storedPoolName } from "./stored-pool.ts";
import type { ImageServices } from "./task-image.ts";

export interface RunGroupInput {
  readonly phase: PhasePrefix;
  readonly episodes: readonly number[];
  readonly policyVersion: number;
  /** Where tasks of a stored pool are unpacked. */
  readonly workFolder: string;
}

export interface RunGroupServices {
  readonly store: ObjectStore;
  readonly sandboxes: SandboxProvider;
  readonly images: ImageServices;
  readonly sampler: Sampler;
  readonly holder: RunEpisodesServices["holder"];
  readonly onEpisode?: RunEpisodesServices["onEpisode"];
  readonly signal?: AbortSignal;
}

/** @throws InputError when an episode is not planned, or the run cannot be played here */
export async function runGroup(
  { phase, episodes, policyVersion, workFolder }: RunGroupInput,
  services: RunGroupServices,
): Promise<void> {
  const { store, sampler } = services;
  const of = parsePhase(phase);
  const { config, pool } = await readRun(store, of.run);
  const wanted = new Set(episodes);
  const plan = (await readPlan(store, phase)).filter(({ episode }) => wanted.has(episode));
  if (plan.length !== wanted.size) {
    throw new InputError({
      what: "episodes that are not planned",
      where: phase,
      expected: `${wanted.size} episodes, got ${plan.length}`,
    });
  }
  const poolFolder = of.kind === "iteration" ? pool.folder : evaluationPool(config.evaluation?.pool, phase);
  const stored = storedPoolName(poolFolder);
  const folder = stored === undefined ? poolFolder : join(workFolder, "tasks");
  if (stored !== undefined)
    await fetchTasks({ pool: stored, tasks: plan.map(({ task }) => task), into: folder }, { store });
  const policy = { version: policyVersion, prefix: policyPrefix(of.run, policyVersion) };
  const text = await openText(store, policy, config);
  const demonstrations = config.kind === "sft" && of.kind === "iteration";
  const rollout =
    of.kind === "iteration" ? config.rollout : { ...config.rollout, attempts: EVALUATION_ATTEMPTS };
  await runEpisodes(
    {
      phase,
      plan,
      prepared: await prepare(folder, plan, { ...services.images, demonstration: demonstrations }),
      config: { ...config, rollout },
      policy,
      layout: demonstrations ? NO_ROUTES : text.layout,
    },
    {
      ...services,
      ...text,
      samplerFor: ({ demonstration }) =>
        demonstration === undefined ? sampler : createDemonstrator(demonstration, text.chat, text.tokenizer),
    },
  );
}

function evaluationPool(pool: string | undefined, phase: string): string {
  if (pool !== undefined) return pool;
  throw new InputError({
    what: "the run has no pool for evaluations",
    where: phase,
    expected: "evaluation.pool in its config",
  });
}
