// Chooses the episodes that a report shows: from the start, the middle and the end of a run, of every outcome there; and
// of an evaluation, the same task before and after. The run's seed decides, so a second report shows the same ones.
import { isTruncated } from "../failure/end-reason.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { evaluationPrefix, iterationPrefix, type PhasePrefix } from "../run/keys.ts";
import type { ClosedEpisode } from "../run/records.ts";
import { type ClosedIteration, closedIterations, type RunData } from "./read-run.ts";

export interface ChosenEpisode {
  readonly phase: PhasePrefix;
  /** Its origin for people, who count iterations from 1: "iteration 12", "evaluation held-out-v000120-x3". */
  readonly place: string;
  /** Version of the policy that played it; version 0 is the start policy. */
  readonly version: number;
  /** Why it was chosen. */
  readonly why: string;
  readonly entry: ClosedEpisode;
}

/** Episodes from training, the same number from each place. */
const TRAINING_COUNT = 12;
/** Names of the places, by their number. */
const PLACE_NAMES = [
  ["only iteration"],
  ["start of the run", "end of the run"],
  ["start of the run", "middle of the run", "end of the run"],
];

export function chooseEpisodes(run: RunData): ChosenEpisode[] {
  return [...chooseFromTraining(run), ...chooseFromEvaluations(run)];
}

const OUTCOMES = ["resolved", "unresolved", "cut off"] as const;
type Outcome = (typeof OUTCOMES)[number];

function outcomeOf({ resolved, endReason }: ClosedEpisode): Outcome {
  if (resolved) return "resolved";
  return isTruncated(endReason) ? "cut off" : "unresolved";
}

function chooseFromTraining({ record: { run, config }, iterations }: RunData): ChosenEpisode[] {
  const played = closedIterations(iterations).filter(({ closed }) => closed.episodes.length > 0);
  if (played.length === 0) return [];
  const last = played.length - 1;
  const places = [...new Set([0, Math.floor(last / 2), last])];
  return places.flatMap((at, index) => {
    const random = new RandomStream(deriveSeed(config.seed, "report episodes", played[at].iteration));
    const part = (share: number): number => Math.floor((share * played.length) / places.length);
    const near = played.slice(part(index), part(index + 1)).filter(other => other !== played[at]);
    // An outcome that the iteration itself lacks, such as a cut-off episode, comes from those around it.
    const candidates = [
      ...random.shuffle(candidatesOf(played[at])),
      ...random.shuffle(near.flatMap(candidatesOf)),
    ];
    return pickOutcomes(candidates, shareOf(index, places.length)).map(({ closed, iteration, entry }) => ({
      phase: iterationPrefix(run, iteration),
      place: `iteration ${iteration + 1}`,
      version: closed.policyVersion,
      why: `${PLACE_NAMES[places.length - 1][index]}, ${outcomeOf(entry)}`,
      entry,
    }));
  });
}

interface Candidate {
  readonly iteration: number;
  readonly closed: ClosedIteration["closed"];
  readonly entry: ClosedEpisode;
}

function candidatesOf({ iteration, closed }: ClosedIteration): Candidate[] {
  return closed.episodes.map(entry => ({ iteration, closed, entry }));
}

/** Divides 12 over 3, 2 or 1 places; the first ones get the remainder. */
function shareOf(index: number, placeCount: number): number {
  return Math.floor(TRAINING_COUNT / placeCount) + Number(index < TRAINING_COUNT % placeCount);
}

/** Takes the first of each outcome in turn until there are enough, and sorts them in the order of play. */
function pickOutcomes(candidates: readonly Candidate[], wanted: number): Candidate[] {
  const byOutcome = Map.groupBy(candidates, ({ entry }) => outcomeOf(entry));
  const queues = OUTCOMES.map(outcome => byOutcome.get(outcome) ?? []);
  const picked: Candidate[] = [];
  for (let round = 0; picked.length < wanted && queues.some(queue => queue.length > round); round++) {
    for (const queue of queues) {
      if (queue.length > round && picked.length < wanted) picked.push(queue[round]);
    }
  }
  return picked.sort((a, b) => a.iteration - b.iteration || a.entry.episode - b.entry.episode);
}

/** Takes from the first series with a gain one task that was won and one that was lost, each before and after. */
function chooseFromEvaluations({ record: { run, config }, evaluations }: RunData): ChosenEpisode[] {
  const series = evaluations.find(({ gain }) => gain !== undefined);
  if (series === undefined) return [];
  const [before, after] = [series.evaluations[0], series.evaluations[series.evaluations.length - 1]];
  const random = new RandomStream(deriveSeed(config.seed, "report episodes", series.name));
  const earlier = Map.groupBy(before.closed.episodes, ({ task }) => task);
  const changed = random.shuffle(after.closed.episodes).flatMap(entry => {
    const base = earlier.get(entry.task)?.find(({ resolved }) => resolved !== entry.resolved);
    return base === undefined ? [] : [{ base, entry }];
  });
  return (["won", "lost"] as const).flatMap(change => {
    const pair = changed.find(({ entry }) => entry.resolved === (change === "won"));
    if (pair === undefined) return [];
    const chosen = (evaluation: typeof before, entry: ClosedEpisode, when: string): ChosenEpisode => ({
      phase: evaluationPrefix(run, evaluation.name),
      place: `evaluation ${evaluation.name}`,
      version: evaluation.version,
      why: `a task that was ${change}: ${when}`,
      entry,
    });
    return [chosen(before, pair.base, "before"), chosen(after, pair.entry, "after")];
  });
}
