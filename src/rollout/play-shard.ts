// Plays a shard of a phase's episodes: what a driver does. What is finished stays finished, so a shard may be played
// again by another driver after this one was ended at any point.
import { join } from "node:path";
import { createReplay } from "../agent/replay.ts";
import { playsDemonstrations } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { type PhasePrefix, parsePhase, policyPrefix } from "../run/keys.ts";
import { phasePool } from "../run/phase-pool.ts";
import type { PlannedEpisode } from "../run/records.ts";
import { type RunRecord, readRun } from "../run/run-record.ts";
import { fetchTasks, storedPoolName } from "../run/stored-pool.ts";
import type { Sampler } from "../sampler/sampler.ts";
import type { SandboxProvider } from "../sandbox/sandbox.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type EpisodeText, openText } from "./episode-text.ts";
import { readPlan } from "./plan.ts";
import { type PreparedTask, prepare } from "./prepare.ts";
import { type RunEpisodesServices, runEpisodes } from "./run-episodes.ts";
import type { ImageServices } from "./task-image.ts";

/** Attempts per episode of an evaluation before it counts as missing: failures are rerun, so that few are. */
const EVALUATION_ATTEMPTS = 6;

export interface PlayShardInput {
  readonly phase: PhasePrefix;
  readonly episodes: readonly number[];
  readonly policyVersion: number;
  /** Where tasks of a stored pool are unpacked. */
  readonly workFolder: string;
}

export interface PlayShardServices
  extends Pick<RunEpisodesServices, "holder" | "onEpisode" | "interruption" | "slots" | "cutoff"> {
  readonly store: ObjectStore;
  readonly sandboxes: SandboxProvider;
  readonly images: ImageServices;
  readonly sampler: Sampler;
  /** Where several shards are played on one machine: what they have in common. */
  readonly shared?: SharedByShards;
}

export interface SharedByShards {
  readonly plan: (phase: PhasePrefix) => Promise<readonly PlannedEpisode[]>;
  readonly prepared: (phase: PhasePrefix) => Promise<ReadonlyMap<string, PreparedTask>>;
  readonly text: (run: string, open: () => Promise<EpisodeText>) => Promise<EpisodeText>;
}

/** @throws InputError when an episode is not planned, or the run cannot be played here */
export async function playShard(
  { phase, episodes, policyVersion, workFolder }: PlayShardInput,
  services: PlayShardServices,
): Promise<void> {
  const { store, sampler, shared } = services;
  const of = parsePhase(phase);
  const record = await readRun(store, of.run);
  const { config } = record;
  const wanted = new Set(episodes);
  const planned = await (shared?.plan(phase) ?? readPlan(store, phase));
  const plan = planned.filter(({ episode }) => wanted.has(episode));
  if (plan.length !== wanted.size) {
    throw new InputError({
      what: "episodes that are not planned",
      where: phase,
      expected: `${wanted.size} episodes, got ${plan.length}`,
    });
  }
  const policy = { version: policyVersion, prefix: policyPrefix(of.run, policyVersion) };
  const open = () => openText(store, policy, config);
  const text = await (shared === undefined ? open() : shared.text(of.run, open));
  const rollout =
    of.kind === "iteration" ? config.rollout : { ...config.rollout, attempts: EVALUATION_ATTEMPTS };
  await runEpisodes(
    {
      phase,
      plan,
      prepared: await (shared?.prepared(phase) ??
        preparePhase({ phase, record, plan, workFolder }, services)),
      config: { ...config, rollout },
      policy,
      layout: showsHow(record, phase) ? undefined : text.layout,
    },
    {
      ...services,
      ...text,
      samplerFor: ({ demonstration }) =>
        demonstration === undefined ? sampler : createReplay(demonstration, text.chat, text.tokenizer),
    },
  );
}

/** Makes the planned tasks ready: fetches them where the pool lies in the store, and builds their images. */
export async function preparePhase(
  {
    phase,
    record,
    plan,
    workFolder,
  }: Pick<PlayShardInput, "phase" | "workFolder"> & {
    readonly record: RunRecord;
    readonly plan: readonly PlannedEpisode[];
  },
  { store, images }: Pick<PlayShardServices, "store" | "images">,
): Promise<ReadonlyMap<string, PreparedTask>> {
  const poolFolder = await phasePool(phase, { store });
  const stored = storedPoolName(poolFolder);
  const folder = stored === undefined ? poolFolder : join(workFolder, "tasks");
  if (stored !== undefined)
    await fetchTasks({ pool: stored, tasks: plan.map(({ task }) => task), into: folder }, { store });
  return prepare(folder, plan, { ...images, demonstration: showsHow(record, phase) });
}

/** Only iterations play demonstrations; evaluations play the policy. */
function showsHow({ config }: RunRecord, phase: PhasePrefix): boolean {
  return parsePhase(phase).kind === "iteration" && playsDemonstrations(config);
}
