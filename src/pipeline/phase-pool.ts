// Which pool the tasks of a phase are from: the run's own, or that of an evaluation, which may be any.
//   evaluations/<name>/evaluation.json    what an evaluation was planned with
import { z } from "zod";
import { encodeJson, readJson } from "../store/json.ts";
import { type PhasePrefix, parsePhase } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { readRun } from "./run-record.ts";

const EvaluationRecord = z.strictObject({
  format: z.literal("t1-evaluation-1"),
  /** An absolute folder, or `store:NAME`. */
  pool: z.string(),
  /** Episodes per task. */
  episodes: z.int().positive(),
});

export async function writeEvaluationRecord(
  store: ObjectStore,
  phase: PhasePrefix,
  { pool, episodes }: { readonly pool: string; readonly episodes: number },
): Promise<void> {
  const record: z.infer<typeof EvaluationRecord> = { format: "t1-evaluation-1", pool, episodes };
  await putOnce(store, evaluationRecordKey(phase), encodeJson(record));
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
