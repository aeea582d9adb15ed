// A new run from a checkpoint of another: its settings, its policy and critic of one version, or, where given, the critic
// that a warm-up trained. The way out of what a redrive cannot repair.
import { InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { runKey } from "./keys.ts";
import { describeSoftware, type RunRecord, readRun } from "./run-record.ts";
import { readState } from "./run-state.ts";
import { startRun } from "./start-run.ts";
import { openCritic } from "./version.ts";

export interface ForkInput {
  readonly run: string;
  readonly from: {
    readonly run: string;
    /** The newest when left out. */
    readonly version?: number;
    readonly critic?: { readonly run: string; readonly version?: number };
  };
  readonly createdAt: Date;
}

/** @returns the record of the run, also when it was made before @throws InputError as `startRun` does */
export async function forkRun(
  { run, from, createdAt }: ForkInput,
  { store }: { readonly store: ObjectStore },
): Promise<RunRecord> {
  if ((await store.head(runKey(run))) !== undefined) return readRun(store, run);
  const source = await readRun(store, from.run);
  const { config } = source;
  const policy = { run: from.run, ...(from.version !== undefined && { version: from.version }) };
  if (config.algorithm !== "ppo") {
    if (from.critic !== undefined) {
      throw new InputError({
        what: `a run with algorithm ${config.algorithm} has no critic`,
        where: from.run,
        expected: "no from.critic",
        fix: "start from a run with algorithm ppo",
      });
    }
    const { model: _, ...rest } = config;
    return startRun({ run, config: { ...rest, policy }, ...common(source, createdAt) }, { store });
  }
  const { from: _, ...settings } = config.training.critic;
  const kept = from.critic ?? ((await hasCritic(store, from)) ? policy : undefined);
  const critic = { ...settings, ...(kept !== undefined && { from: kept }) };
  const forked = { ...config, policy, training: { ...config.training, critic } };
  return startRun({ run, config: forked, ...common(source, createdAt) }, { store });
}

/** Version 0 has none unless one was brought along. */
async function hasCritic(store: ObjectStore, { run, version }: ForkInput["from"]): Promise<boolean> {
  const at = version ?? (await readState(store, run)).state.policyPublished;
  return (await openCritic(store, { run, version: at })) !== undefined;
}

/** Paths in a stored config are absolute or name the store: nothing is resolved against a folder. */
function common({ software }: RunRecord, createdAt: Date) {
  return { configFile: "/run.yaml", software: describeSoftware(software), createdAt };
}
