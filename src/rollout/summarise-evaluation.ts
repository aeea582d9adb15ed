// From the closed list of an evaluation to rates with intervals, and to the paired difference of two.
import {
  compareEvaluations,
  type EvaluatedEpisode,
  type EvaluationSummary,
  summariseEvaluation,
} from "../evaluation/summary.ts";
import { InputError } from "../failure/errors.ts";
import { deriveSeed } from "../random/seed.ts";
import { evaluationPrefix, summaryKey } from "../run/keys.ts";
import type { ClosedPhase } from "../run/records.ts";
import { readRun } from "../run/run-record.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readClosed } from "./close.ts";

/** Writes `summary.json` of a closed evaluation. Safe to run again. @throws InputError when there is another one */
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
  const key = summaryKey(phase);
  const text = encodeJson(summary);
  if ((await store.put(key, text, { ifNoneMatch: "*" })).written) return summary;
  const there = await store.get(key);
  if (there !== undefined && Buffer.from(text).equals(there.body)) return summary;
  throw new InputError({
    what: "not the summary of what was evaluated",
    where: key,
    expected:
      "expected what closed.json beside it comes to: it was changed, or made by another version of t1",
    fix: "delete it; t1 evaluate makes it again",
  });
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
