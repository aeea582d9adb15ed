// `run.json`: what a run was started with. Written once; a resumed run reads its settings here and nowhere else.
import { cpus } from "node:os";
import { z } from "zod";
import { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { runKey } from "./keys.ts";

export const RunRecord = z.strictObject({
  format: z.literal("t1-run-1"),
  run: z.string(),
  createdAt: z.iso.datetime(),
  /** Defaults filled in; paths absolute. */
  config: RunConfig,
  pool: z.strictObject({ folder: z.string(), taskCount: z.int().positive() }),
  software: z.strictObject({
    node: z.string(),
    onnxruntime: z.string(),
    platform: z.string(),
    cpu: z.string(),
  }),
});
export type RunRecord = z.infer<typeof RunRecord>;

/** @throws InputError when there is no such run, or its record was written by another version */
export async function readRun(store: ObjectStore, run: string): Promise<RunRecord> {
  const key = runKey(run);
  const found = await store.get(key);
  if (found !== undefined) return parseJson(found.body, key, RunRecord);
  throw new InputError({
    what: "no such run",
    where: key,
    expected: `expected it in ${store.url}`,
    fix: "check the name of the run and the store; t1 run list names the runs of a store",
  });
}

export function describeSoftware(onnxruntime: string): RunRecord["software"] {
  return {
    node: process.version,
    onnxruntime,
    platform: `${process.platform}-${process.arch}`,
    cpu: cpus()[0]?.model ?? "unknown",
  };
}
