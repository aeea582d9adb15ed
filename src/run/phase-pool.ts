// Which pool the tasks of a phase are from: the run's own, or that of an evaluation, which may be any.
//   evaluations/<name>/evaluation.json    what an evaluation was planned with
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { encodeJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type PhasePrefix, parsePhase } from "./keys.ts";
import { readRun } from "./run-record.ts";

const EvaluationRecord = z.strictObject({
  format: z.literal("t1-evaluation-1"),
  /** An absolute folder, or `store:NAME`. */
  pool: z.string(),
  /** Episodes per task. */
  episodes: z.int().positive(),
});

/** @throws InputError when the evaluation was begun with a pool at another place, where its drivers look for tasks */
export async function writeEvaluationRecord(
  store: ObjectStore,
  phase: PhasePrefix,
  { pool, episodes }: { readonly pool: string; readonly episodes: number },
): Promise<void> {
  const record: z.infer<typeof EvaluationRecord> = { format: "t1-evaluation-1", pool, episodes };
  const key = evaluationRecordKey(phase);
  if ((await store.put(key, encodeJson(record), { ifNoneMatch: "*" })).written) return;
  const begun = await readJson(store, key, EvaluationRecord);
  if (begun.pool === pool && begun.episodes === episodes) return;
  throw new InputError({
    what: "the evaluation was begun with another pool",
    where: key,
    expected: `expected ${begun.pool}, ${begun.episodes} episodes per task, got ${pool}, ${episodes}`,
    fix: "bring the pool back there, or evaluate under another name (t1 evaluate --name)",
  });
}

/** @throws InputError when the phase was not planned */
export async function phasePool(
  phase: PhasePrefix,
  { store }: { readonly store: ObjectStore },
): Promise<string> {
  const of = parsePhase(phase);
  if (of.kind === "iteration") return (await readRun(store, of.run)).pool.folder;
  return (await readJson(store, evaluationRecordKey(phase), EvaluationRecord)).pool;
}

function evaluationRecordKey(phase: PhasePrefix): string {
  return `${phase}evaluation.json`;
}
