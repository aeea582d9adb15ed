// `run.json`: what a run was started with, and what of it was changed since. Every stage reads its settings here and
// nowhere else.
import { cpus } from "node:os";
import { z } from "zod";
import { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { runKey } from "./keys.ts";

/**
 * Counts up when a run's folder changes so that an older or newer t1 could not go on with it.
 * 1 ("t1-run-1"): critics/ and optimizers/ beside policies/. 2: engine/ in place of both.
 */
export const RUN_FORMAT = 2;

const SettingValue = z.union([z.number(), z.boolean(), z.string()]);

const RunChange = z.strictObject({
  at: z.iso.datetime(),
  /** The first iteration whose episodes were not all played yet. */
  iteration: z.int().nonnegative(),
  key: z.string(),
  /** Missing where it was not set. */
  old: SettingValue.optional(),
  new: SettingValue,
});
export type RunChange = z.infer<typeof RunChange>;

export const RunRecord = z.strictObject({
  format: z.literal(RUN_FORMAT),
  run: z.string(),
  createdAt: z.iso.datetime(),
  /** As it holds now: with all changes made. Defaults filled in; paths absolute. */
  config: RunConfig,
  /** What `t1 run resume --set` changed, in order; missing where nothing was. */
  changes: z.array(RunChange).optional(),
  pool: z.strictObject({ folder: z.string(), taskCount: z.int().positive() }),
  /** Node, the machine, and what the engine computes with, each by its name. */
  software: z.object({ node: z.string(), platform: z.string(), cpu: z.string() }).catchall(z.string()),
});
export type RunRecord = z.infer<typeof RunRecord>;

/** @throws InputError when there is no such run, or its record was written by another version */
export async function readRun(store: ObjectStore, run: string): Promise<RunRecord> {
  return (await readVersionedRun(store, run)).record;
}

/** As `readRun`, with the version of the object, which whoever changes it has to find unchanged. */
export async function readVersionedRun(
  store: ObjectStore,
  run: string,
): Promise<{ readonly record: RunRecord; readonly etag: string }> {
  const key = runKey(run);
  const found = await store.get(key);
  if (found !== undefined) {
    assertFormat(parseJson(found.body, key, AnyRecord), store, key);
    return { record: parseJson(found.body, key, RunRecord), etag: found.etag };
  }
  throw new InputError({
    what: "no such run",
    where: key,
    expected: `expected it in ${store.url}`,
    fix: "check the name of the run and the store; t1 run list names the runs of a store",
  });
}

const AnyRecord = z.looseObject({ format: z.unknown() });

/** A run of another format is refused as a whole, before a key of it that has another meaning by now is read. */
function assertFormat({ format }: z.infer<typeof AnyRecord>, store: ObjectStore, key: string): void {
  if (format === RUN_FORMAT) return;
  const policies = key.replace(/run\.json$/, "policies/");
  throw new InputError({
    what: "the run was written by another version of t1",
    where: key,
    expected: `expected format ${RUN_FORMAT}, got ${format === "t1-run-1" ? "format 1" : JSON.stringify(format)}`,
    fix: `use the t1 that wrote it (format 1: commit b58df94), or start a new run whose policy is a folder below ${store.url}/${policies}`,
  });
}

/** @param engine versions that the engine names */
export function describeSoftware(engine: Readonly<Record<string, string>>): RunRecord["software"] {
  return {
    ...engine,
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    cpu: cpus()[0]?.model ?? "unknown",
  };
}
