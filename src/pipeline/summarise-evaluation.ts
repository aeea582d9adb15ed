// From the closed list of an evaluation to rates with intervals, and to the paired difference of two.
import {
  compareEvaluations,
  type EvaluatedEpisode,
  type EvaluationSummary,
  summariseEvaluation,
} from "../evaluation/summary.ts";
import { deriveSeed } from "../random/seed.ts";
import { encodeJson } from "../store/json.ts";
import { evaluationPrefix, summaryKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { readClosed } from "./close.ts";
import type { ClosedPhase } from "./records.ts";
import { readRun } from "./run-record.ts";

/** Writes `summary.json` of a closed evaluation. Safe to run again. */
export async function summarise(
  { run, name }: { readonly run: string; readonly name: string },
  { store }: { readonly store: ObjectStore },
): Promise<EvaluationSummary> {
  const { config } = await readRun(store, run);
  const phase = evaluationPrefix(run, name);
  const summary = summariseEvaluation(
    evaluatedEpisodes(await readClosed(store, phase)),
    deriveSeed(config.seed, "evaluation intervals"),
  );
  await putOnce(store, summaryKey(phase), encodeJson(summary));
  return summary;
}

/** Paired difference of two closed evaluations of the same pool. */
export async function compare(store: ObjectStore, run: string, before: string, after: string) {
  const { config } = await readRun(store, run);
  const read = async (name: string) =>
    evaluatedEpisodes(await readClosed(store, evaluationPrefix(run, name)));
  return compareEvaluations(
    await read(before),
    await read(after),
    deriveSeed(config.seed, "evaluation intervals"),
  );
}

function evaluatedEpisodes({ episodes, failed }: ClosedPhase): EvaluatedEpisode[] {
  const done = episodes.map(({ task, labels, resolved, reward }) => ({
    task,
    groups: groupsOf(labels),
    outcome: { resolved, reward },
  }));
  return [...done, ...failed.map(({ task, labels }) => ({ task, groups: groupsOf(labels) }))];
}

/** Labels that few tasks share are no groups. */
function groupsOf({ kind, families }: ClosedPhase["episodes"][number]["labels"]): string[] {
  const list = Array.isArray(families) ? families.map(family => `family ${family}`) : [];
  return typeof kind === "string" ? [`kind ${kind}`, ...list] : list;
}
