// The evaluations of a run, grouped into series: the same pool and number of episodes at several versions.
import { type Comparison, EvaluationSummary } from "../evaluation/summary.ts";
import { compare } from "../rollout/summarise-evaluation.ts";
import {
  attemptPrefix,
  closedKey,
  episodeKey,
  episodePrefix,
  evaluationPrefix,
  summaryKey,
} from "../run/keys.ts";
import { ClosedPhase, EpisodeRecord } from "../run/records.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { mapSome, readOptional, tryRead } from "./read-parts.ts";

interface EvaluationData {
  readonly name: string;
  readonly version: number;
  readonly summary: EvaluationSummary;
  readonly closed: ClosedPhase;
}

export interface EvaluationSeries {
  readonly name: string;
  /** The name of the pool, for people. */
  readonly title: string;
  /** Sorted by version, at least one. */
  readonly evaluations: readonly EvaluationData[];
  /** Gain of the newest version over the oldest, where there are two. */
  readonly gain?: Comparison;
}

export async function readEvaluations(
  store: ObjectStore,
  run: string,
  problems: string[],
): Promise<readonly EvaluationSeries[]> {
  const names = await Array.fromAsync(store.folders(`runs/${run}/evaluations/`));
  const found = await mapSome(names, name => readEvaluation(store, run, name, problems));
  const finished = found.filter(evaluation => evaluation !== undefined);
  const series = Map.groupBy(finished, ({ name, version }) => seriesName(name, version));
  const poolOf = (name: string): string => name.replace(EPISODES_PER_TASK, "");
  const isAlone = (name: string): boolean =>
    ![...series.keys()].some(other => other !== name && poolOf(other) === poolOf(name));
  const read: EvaluationSeries[] = [];
  for (const [name, members] of series) {
    const evaluations = members.sort((a, b) => a.version - b.version);
    const [oldest, newest] = [evaluations[0], evaluations[evaluations.length - 1]];
    const gain =
      newest.version === oldest.version
        ? undefined
        : await tryRead(() => compare(store, run, oldest.name, newest.name));
    if (gain?.kind === "unreadable") problems.push(gain.problem);
    read.push({
      name,
      // Where two series have the same pool, the title also says how they differ.
      title: name.replace(EPISODES_PER_TASK, isAlone(name) ? "" : ", $1 per task"),
      evaluations,
      gain: gain?.kind === "read" ? gain.value : undefined,
    });
  }
  return inOrderOfPlay(store, run, read);
}

/** The run's own evaluations come first, then the others in the order in which they were played. */
async function inOrderOfPlay(
  store: ObjectStore,
  run: string,
  series: readonly EvaluationSeries[],
): Promise<EvaluationSeries[]> {
  const timed = await mapSome(series, async one => {
    const [{ name, closed }] = one.evaluations;
    const [entry] = closed.episodes;
    if (one.name === OWN_EVALUATION || entry === undefined) return { one, at: "" };
    const attempt = attemptPrefix(episodePrefix(evaluationPrefix(run, name), entry.episode), entry.attempt);
    const record = await readOptional(store, episodeKey(attempt), EpisodeRecord, []);
    return { one, at: record?.startedAt ?? "" };
  });
  const rank = ({ one, at }: (typeof timed)[number]) => (one.name === OWN_EVALUATION ? "0" : `1${at}`);
  return timed.sort((a, b) => (rank(a) < rank(b) ? -1 : 1)).map(({ one }) => one);
}

/** Name of the series that the run itself makes. */
const OWN_EVALUATION = "during";

/** Leaves out an evaluation that is still at work, which has no summary yet. */
async function readEvaluation(
  store: ObjectStore,
  run: string,
  name: string,
  problems: string[],
): Promise<EvaluationData | undefined> {
  const prefix = await tryRead(async () => evaluationPrefix(run, name));
  if (prefix.kind === "unreadable") {
    problems.push(prefix.problem);
    return undefined;
  }
  const phase = prefix.value;
  const summary = await readOptional(store, summaryKey(phase), EvaluationSummary, problems);
  const closed = await readOptional(store, closedKey(phase), ClosedPhase, problems);
  if (summary === undefined || closed === undefined) return undefined;
  return { name, version: closed.policyVersion, summary, closed };
}

/** End of the name of an evaluation that `t1 evaluate` made. */
const EPISODES_PER_TASK = /-x(\d+)$/;

/** The name of an evaluation without its version: "held-out-v000120-x3" → "held-out-x3", "during-000040" → "during". */
function seriesName(name: string, version: number): string {
  const number = `${version}`.padStart(6, "0");
  return name.replace(new RegExp(`-v?${number}(?=-|$)`), "");
}
