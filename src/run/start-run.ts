// Makes a new run in a store: its first policy (copied in, or new), its critic where one was warmed up, its state, and
// last its record. Until the record is there the run does not exist, and starting it again goes on from what is there.

import { dirname, resolve } from "node:path";
import { chatOptions } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { decodeModelFiles, type Files } from "../model/checkpoint.ts";
import { readLocalFiles, readStoredFiles, readTextFormat, writeStoredFiles } from "../model/model-folder.ts";
import { assertFinite, type Head } from "../model/parameters.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { START } from "../task/pool.ts";
import { criticPrefix, policyPrefix, runKey, stateKey } from "./keys.ts";
import { newModelFiles } from "./new-model.ts";
import { type RunRecord, readRun } from "./run-record.ts";
import { createState, readState } from "./run-state.ts";
import { openPlannablePool, storedPoolName } from "./stored-pool.ts";

export interface StartInput {
  readonly run: string;
  readonly config: RunConfig;
  /** The file the config was read from; its relative paths start there. */
  readonly configFile: string;
  readonly software: RunRecord["software"];
  readonly createdAt: Date;
}

/** @throws InputError when the run exists, or when pool or models are not as the config needs them */
export async function startRun(
  { run, config: written, configFile, software, createdAt }: StartInput,
  { store }: { readonly store: ObjectStore },
): Promise<RunRecord> {
  if ((await store.head(runKey(run))) !== undefined) {
    throw new InputError({
      what: "the run exists already",
      where: `${store.url}/${runKey(run)}`,
      expected: "expected a new name",
      fix: `t1 run resume ${run}, or choose another name`,
    });
  }
  const config = withAbsolutePaths(written, dirname(resolve(configFile)));
  const pool = await openPlannablePool(config.tasks.pool, store);
  const policy = await firstPolicy(config, pool.folder, store);
  const where = typeof config.policy === "string" ? config.policy : "the new model";
  const model = decodeModelFiles(policy, "language", where);
  assertFinite(model.parameters, where);
  const { tokenizer, chat } = readTextFormat(policy, where, chatOptions(config.agent));
  if (config.agent.summary !== undefined) chat.assertUserMessagesInARow();
  if (tokenizer.vocabSize > model.config.vocabSize) {
    throw new InputError({
      what: "the tokenizer does not fit the model",
      where,
      expected: `at most ${model.config.vocabSize} tokens, got ${tokenizer.vocabSize}`,
    });
  }
  if (config.agent.contextTokens > model.config.maxPositions) {
    throw new InputError({
      what: "the context is longer than the model can be run with",
      where: "agent.contextTokens",
      expected: `at most ${model.config.maxPositions}, got ${config.agent.contextTokens}`,
    });
  }
  await writeStoredFiles(store, policyPrefix(run, 0), policy);
  if (config.kind !== "sft" && config.training.critic.from !== undefined) {
    const critic = await readSource(store, config.training.critic.from, criticPrefix);
    const { parameters } = decodeModelFiles(critic, "value" satisfies Head, "training.critic.from");
    assertFinite(parameters, "training.critic.from");
    await writeStoredFiles(store, criticPrefix(run, 0), critic);
  }
  if ((await store.head(stateKey(run))) === undefined) await createState(store, run, START);
  const record: RunRecord = {
    format: "t1-run-1",
    run,
    createdAt: createdAt.toISOString(),
    config,
    pool: { folder: pool.folder, taskCount: pool.names.length },
    software,
  };
  await putOnce(store, runKey(run), encodeJson(record));
  return record;
}

/** A run keeps the config it was started with. @throws InputError for a config that says something else by now */
export async function assertSameConfig(
  { run, config, configFile }: Pick<StartInput, "run" | "config" | "configFile">,
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const [own, now] = [
    (await readRun(store, run)).config,
    withAbsolutePaths(config, dirname(resolve(configFile))),
  ].map(settingsOf);
  const changed = [...new Set([...own.keys(), ...now.keys()])].filter(key => own.get(key) !== now.get(key));
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

function firstPolicy(config: RunConfig, poolFolder: string, store: ObjectStore): Promise<Files> {
  if (config.policy !== undefined) return readSource(store, config.policy, policyPrefix);
  if (config.kind === "sft" && config.model !== undefined)
    return newModelFiles(config.model, poolFolder, config);
  throw new InputError({ what: "no model to start from", where: "policy", expected: "a model folder" });
}

async function readSource(
  store: ObjectStore,
  source: NonNullable<RunConfig["policy"]>,
  prefixOf: typeof policyPrefix,
): Promise<Files> {
  if (typeof source === "string") return readLocalFiles(source);
  const version = source.version ?? (await readState(store, source.run)).state.policyPublished;
  return readStoredFiles(store, prefixOf(source.run, version));
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
  if (config.kind === "sft")
    return { ...config, ...shared, ...(config.policy !== undefined && { policy: absolute(config.policy) }) };
  const { critic } = config.training;
  const training = {
    ...config.training,
    critic: { ...critic, ...(critic.from !== undefined && { from: absolute(critic.from) }) },
  };
  return { ...config, ...shared, policy: absolute(config.policy), training };
}
