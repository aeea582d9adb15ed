// Results of training by the tasks' labels: the first quarter of the iterations beside the last one.
import { shareDifference } from "../evaluation/share-difference.ts";
import type { ClosedEpisode } from "../run/records.ts";
import { count, decimals, plural, points, signed } from "./format.ts";
import { type Html, html } from "./html.ts";
import { closedIterations, type RunData } from "./read-run.ts";
import { shareBar } from "./share-bar.ts";
import { table } from "./table.ts";

type Labels = ClosedEpisode["labels"];

/** A label with more values than this is a name, not a group. */
const MOST_VALUES = 40;

export interface LabelGroups {
  readonly label: string;
  readonly values: readonly string[];
}

/** Labels that cut the episodes into groups: more than one value, and not one per task; small ones first. */
export function labelGroups(labels: readonly Labels[]): LabelGroups[] {
  const found = new Map<string, Set<string>>();
  for (const one of labels) {
    for (const label of Object.keys(one)) {
      const values = found.get(label) ?? new Set();
      for (const value of valuesOf(one, label)) if (values.size <= MOST_VALUES) values.add(value);
      found.set(label, values);
    }
  }
  return [...found]
    .filter(([, values]) => values.size > 1 && values.size <= MOST_VALUES)
    .sort(([a, few], [b, many]) => few.size - many.size || (a < b ? -1 : 1))
    .map(([label, values]) => ({ label, values: [...values].sort() }));
}

/** A task's values of a label: several when the label is a list, none without the label. */
export function valuesOf(labels: Labels, label: string): readonly string[] {
  if (!Object.hasOwn(labels, label)) return [];
  const value = labels[label];
  if (Array.isArray(value)) return value;
  return typeof value === "boolean" ? [value ? "yes" : "no"] : [String(value)];
}

/** A pool with more labels than this has labels of another kind. */
const MOST_LABELS = 8;

export function trainingGroups({ iterations }: RunData): Html {
  const closed = closedIterations(iterations);
  if (closed.length === 0)
    return html`<section id="groups"><h2>Training results by group</h2><p class="empty">No iteration is closed yet.</p></section>`;
  const quarter = Math.max(1, Math.floor(closed.length / 4));
  const episodesOf = (part: typeof closed): ClosedEpisode[] => part.flatMap(data => data.closed.episodes);
  const last = episodesOf(closed.slice(-quarter));
  const first = closed.length === 1 ? [] : episodesOf(closed.slice(0, quarter));
  const groups = labelGroups([...first, ...last].map(({ labels }) => labels)).slice(0, MOST_LABELS);
  const lead =
    closed.length === 1
      ? "Of the only closed iteration."
      : `The first ${plural(quarter, "iteration")} against the last ${count(quarter)}, of ${count(closed.length)}. In brackets a 95 % interval of the change; both draw other tasks.`;
  const rows = (label: string, values: readonly string[]) =>
    values.map(value => {
      const own = (episodes: readonly ClosedEpisode[]): ClosedEpisode[] =>
        episodes.filter(({ labels }) => valuesOf(labels, label).includes(value));
      return rowOf(value, own(first), own(last));
    });
  return html`<section id="groups"><h2>Training results by group</h2><p class="lead">${lead}</p>
<div class="stack">${[
    groupTable("all", [rowOf("all episodes", first, last)]),
    ...groups.map(({ label, values }) => groupTable(label, rows(label, values))),
  ]}</div></section>`;
}

type Row = Parameters<typeof table>[1][number];

function groupTable(label: string, rows: readonly Row[]): Html {
  return table(
    [
      { name: label },
      { name: "episodes", number: true },
      { name: "resolved, %", number: true },
      { name: "" },
      { name: "change, points", number: true },
      { name: "reward", number: true },
    ],
    rows,
  );
}

function rowOf(name: string, first: readonly ClosedEpisode[], last: readonly ClosedEpisode[]): Row {
  const [before, after] = [statisticsOf(first), statisticsOf(last)];
  const change = before !== undefined && after !== undefined && changeOf(before, after);
  const both = (write: (statistics: Statistics) => string): string =>
    [before, after].map(one => (one === undefined ? "–" : write(one))).join(" → ");
  return [
    name,
    `${count(first.length)} → ${count(last.length)}`,
    both(({ resolved }) => decimals(100 * resolved, 1)),
    shareBar(before?.resolved, after?.resolved),
    change,
    both(({ reward }) => decimals(reward, 2)),
  ];
}

interface Statistics {
  readonly size: number;
  readonly resolved: number;
  readonly reward: number;
}

function statisticsOf(episodes: readonly ClosedEpisode[]): Statistics | undefined {
  const size = episodes.length;
  if (size === 0) return undefined;
  return {
    size,
    resolved: episodes.filter(({ resolved }) => resolved).length / size,
    reward: episodes.reduce((sum, { reward }) => sum + reward, 0) / size,
  };
}

/** "−12.5 [−43, +21]": whole points, because so few episodes are no more precise. */
function changeOf(before: Statistics, after: Statistics): string {
  const counted = ({ resolved, size }: Statistics) => ({ successes: Math.round(resolved * size), size });
  const { mean, low, high } = shareDifference(counted(before), counted(after));
  return `${points(mean)} [${signed(100 * low, 0)}, ${signed(100 * high, 0)}]`;
}
