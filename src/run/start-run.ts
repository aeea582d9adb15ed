// Makes a new run in a store: its first policy (copied in, or new), its critic where one was warmed up, its state, and
// last its record. Until the record is there the run does not exist, and starting it again goes on from what is there.

import { dirname, resolve } from "node:path";
import { chatOptions } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import type { FileSet } from "../files/content.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import { checkModel, modelFiles } from "../model/checkpoint.ts";
import { openLocalModel, readTextFormat } from "../model/model-folder.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { START } from "../task/pool.ts";
import { runKey, stateKey } from "./keys.ts";
import { newModelFiles } from "./new-model.ts";
import { RUN_FORMAT, type RunRecord, readRun } from "./run-record.ts";
import { createState, readState } from "./run-state.ts";
import { openPlannablePool, type PlannablePool, storedPoolName } from "./stored-pool.ts";
import { asCritic, openCritic, openPolicy, type Version, writeEngineState, writePolicy } from "./version.ts";

export interface StartInput {
  readonly run: string;
  readonly config: RunConfig;
  /** The file the config was read from; its relative paths start there. */
  readonly configFile: string;
  readonly software: RunRecord["software"];
  readonly createdAt: Date;
}

/** Everything that a run begins with, read and found fit. */
export interface RunInputs {
  /** Paths absolute. */
  readonly config: RunConfig;
  readonly pool: PlannablePool;
  readonly policy: FileSet;
  readonly critic: FileSet | undefined;
  readonly tokenizer: Tokenizer;
  readonly chat: ChatFormat;
}

/**
 * Reads what a run would begin with. Writes nothing.
 *
 * @param store undefined where there is none yet
 * @throws InputError when pool or models are not as the config needs them
 */
export async function readRunInputs(
  { config: written, configFile }: Pick<StartInput, "config" | "configFile">,
  { store }: { readonly store: ObjectStore | undefined },
): Promise<RunInputs> {
  const config = withAbsolutePaths(written, dirname(resolve(configFile)));
  const pool = await openPlannablePool(config.tasks.pool, store);
  const policy = await firstPolicy(config, pool.folder, store);
  const model = await checkModel(policy, "language");
  const { tokenizer, chat } = await readTextFormat(policy, chatOptions(config.agent));
  if (config.agent.summary !== undefined) chat.assertUserMessagesInARow();
  if (tokenizer.vocabSize > model.vocabSize) {
    throw new InputError({
      what: "the tokenizer does not fit the model",
      where: policy.where,
      expected: `at most ${model.vocabSize} tokens, got ${tokenizer.vocabSize}`,
    });
  }
  if (config.agent.contextTokens > model.maxPositions) {
    throw new InputError({
      what: "the context is longer than the model can be run with",
      where: "agent.contextTokens",
      expected: `at most ${model.maxPositions}, got ${config.agent.contextTokens}`,
      fix: `set it to ${model.maxPositions} or less`,
    });
  }
  const from = config.algorithm === "ppo" ? config.training.critic.from : undefined;
  const critic = from === undefined ? undefined : await readSource(store, from, openSourceCritic);
  if (critic !== undefined) await checkModel(critic, "value");
  return { config, pool, policy, critic, tokenizer, chat };
}

/** @throws InputError when the store has a run of this name */
export async function assertNoRun(run: string, store: ObjectStore): Promise<void> {
  if ((await store.head(runKey(run))) === undefined) return;
  throw new InputError({
    what: "the run exists already",
    where: `${store.url}/${runKey(run)}`,
    expected: "expected a new name",
    fix: `t1 run resume ${run} goes on with it; else choose another name, or t1 run delete ${run}`,
  });
}

/**
 * @param inputs when they were read already
 * @throws InputError when the run exists, or as `readRunInputs` does
 */
export async function startRun(
  { run, config, configFile, software, createdAt }: StartInput,
  { store }: { readonly store: ObjectStore },
  inputs?: RunInputs,
): Promise<RunRecord> {
  await assertNoRun(run, store);
  const { pool, policy, critic, ...read } =
    inputs ?? (await readRunInputs({ config, configFile }, { store }));
  const first = { run, version: 0 };
  if (critic !== undefined) await writeEngineState(store, first, asCritic(await modelFiles(critic)));
  await writePolicy(store, first, await modelFiles(policy));
  if ((await store.head(stateKey(run))) === undefined) await createState(store, run, START);
  const record: RunRecord = {
    format: RUN_FORMAT,
    run,
    createdAt: createdAt.toISOString(),
    config: read.config,
    pool: { folder: pool.folder, taskCount: pool.names.length },
    software,
  };
  await putOnce(store, runKey(run), encodeJson(record));
  return record;
}

/**
 * A run keeps the config it was started with, but for what `t1 run resume --set` changed.
 *
 * @throws InputError for a config that says something else by now
 */
export async function assertSameConfig(
  { run, config, configFile }: Pick<StartInput, "run" | "config" | "configFile">,
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const record = await readRun(store, run);
  const resumedWith = new Set(record.changes?.map(({ key }) => key));
  const [own, now] = [record.config, withAbsolutePaths(config, dirname(resolve(configFile)))].map(settingsOf);
  const changed = [...new Set([...own.keys(), ...now.keys()])].filter(
    key => own.get(key) !== now.get(key) && !resumedWith.has(key),
  );
  if (changed.length === 0) return;
  const shown = changed.map(key => `${key}: ${own.get(key) ?? "not set"}, now ${now.get(key) ?? "not set"}`);
  throw new InputError({
    what: "the run was started with another config",
    where: configFile,
    expected: `expected what it was started with; ${shown.join("; ")}`,
    fix: `t1 run resume ${run} goes on with the run's own config; another config needs another name`,
  });
}

/** JSON of every setting, by its path. */
function settingsOf(config: RunConfig): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  const visit = (value: unknown, path: readonly string[]): void => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      if (value !== undefined) settings.set(path.join("."), JSON.stringify(value));
    } else for (const [key, below] of Object.entries(value)) visit(below, [...path, key]);
  };
  visit(config, []);
  return settings;
}

function firstPolicy(
  config: RunConfig,
  poolFolder: string,
  store: ObjectStore | undefined,
): Promise<FileSet> {
  if (config.policy !== undefined) return readSource(store, config.policy, openPolicy);
  if (config.model !== undefined) return newModelFiles(config.model, poolFolder, config);
  throw new InputError({ what: "no model to start from", where: "policy", expected: "a model folder" });
}

async function readSource(
  store: ObjectStore | undefined,
  source: NonNullable<RunConfig["policy"]>,
  open: (store: ObjectStore, version: Version) => Promise<FileSet>,
): Promise<FileSet> {
  if (typeof source === "string") return openLocalModel(source);
  if (store === undefined)
    throw new InputError({
      what: "no such run",
      where: source.run,
      expected: "expected it in the store, which is not there yet",
      fix: "check --local",
    });
  const version = source.version ?? (await readState(store, source.run)).state.policyPublished;
  return open(store, { run: source.run, version });
}

async function openSourceCritic(store: ObjectStore, version: Version): Promise<FileSet> {
  const critic = await openCritic(store, version);
  if (critic !== undefined) return critic;
  throw new InputError({
    what: "no such critic",
    where: `run ${version.run}, version ${version.version}`,
    expected: "expected a version that was trained with a critic and is still kept",
    fix: "take another version; keep.stateEvery says which stay",
  });
}

function withAbsolutePaths(config: RunConfig, folder: string): RunConfig {
  const absolute = <T>(source: T): T | string =>
    typeof source === "string" ? resolve(folder, source) : source;
  const poolPath = (pool: string): string =>
    storedPoolName(pool) === undefined ? resolve(folder, pool) : pool;
  const shared = {
    tasks: { ...config.tasks, pool: poolPath(config.tasks.pool) },
    ...(config.evaluation && {
      evaluation: { ...config.evaluation, pool: poolPath(config.evaluation.pool) },
    }),
  };
  const policy = config.policy !== undefined && { policy: absolute(config.policy) };
  if (config.algorithm !== "ppo") return { ...config, ...shared, ...policy };
  const { critic } = config.training;
  const training = {
    ...config.training,
    critic: { ...critic, ...(critic.from !== undefined && { from: absolute(critic.from) }) },
  };
  return { ...config, ...shared, ...policy, training };
}
