// Episodes that were started and do not count: those that the straggler rule cut, and those that failed.
import type { ClosedPhase } from "../run/records.ts";
import { count, percent, plural } from "./format.ts";
import { labelGroups, valuesOf } from "./groups.ts";
import { type Html, html } from "./html.ts";
import { closedIterations, type RunData } from "./read-run.ts";
import { table } from "./table.ts";

export function stragglers({ iterations }: RunData): Html | undefined {
  const closed = closedIterations(iterations).map(data => data.closed);
  if (closed.length === 0) return undefined;
  const counted = closed.flatMap(({ episodes }) => episodes);
  const cancelled = closed.flatMap(phase => phase.cancelled);
  const failed = closed.flatMap(phase => phase.failed);
  const launched = counted.length + cancelled.length + failed.length;
  const lead =
    counted.length === launched
      ? `Every one of ${plural(launched, "started episode")} counts: none was cut, none failed.`
      : `Of ${plural(launched, "started episode")} ${count(counted.length)} count, ${count(cancelled.length)} were cut as stragglers and ${count(failed.length)} failed.`;
  return html`<section id="started"><h2>Started and counted</h2><p class="lead">${lead}</p>
<div class="columns">${cancelled.length > 0 && [...byLabel(counted, cancelled), byLength(counted, cancelled)]}${failed.length > 0 && failures(failed)}</div></section>`;
}

type Counted = ClosedPhase["episodes"];
type Cancelled = ClosedPhase["cancelled"];

/** Labels with a table of their own. */
const MOST_LABELS = 6;

function byLabel(counted: Counted, cancelled: Cancelled): Html[] {
  const groups = labelGroups([...counted, ...cancelled].map(({ labels }) => labels)).slice(0, MOST_LABELS);
  return groups.map(({ label, values }) =>
    cutTable(
      label,
      values.map(value => {
        const own = (list: Counted | Cancelled): number =>
          list.filter(({ labels }) => valuesOf(labels, label).includes(value)).length;
        return [value, own(counted), own(cancelled)];
      }),
    ),
  );
}

/** Divides the counted episodes into four equal parts by tokens; a cut episode counts by its tokens so far. */
function byLength(counted: Counted, cancelled: Cancelled): Html {
  const sorted = counted.map(({ tokenCount }) => tokenCount).sort((a, b) => a - b);
  const edges = [0.25, 0.5, 0.75].map(share => sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  const bins = [...new Set([...edges, Number.POSITIVE_INFINITY])];
  const rows = bins.map((edge, index): [string, number, number] => {
    const below = bins[index - 1] ?? -1;
    const own = (list: Counted | Cancelled): number =>
      list.filter(({ tokenCount }) => tokenCount > below && tokenCount <= edge).length;
    const name = Number.isFinite(edge) ? `${below + 1} – ${edge} tokens` : `more than ${below} tokens`;
    return [name, own(counted), own(cancelled)];
  });
  return cutTable("length when it ended or was cut", rows);
}

function cutTable(name: string, rows: readonly (readonly [string, number, number])[]): Html {
  return table(
    [
      { name },
      { name: "started", number: true },
      { name: "counted", number: true },
      { name: "cut", number: true },
      { name: "cut, share", number: true },
    ],
    rows.map(([value, counted, cut]) => [
      value,
      count(counted + cut),
      count(counted),
      count(cut),
      counted + cut === 0 ? "–" : percent(cut / (counted + cut)),
    ]),
  );
}

function failures(failed: ClosedPhase["failed"]): Html {
  const byName = Map.groupBy(failed, ({ failure }) => `${failure.layer}: ${failure.name}`);
  return table(
    [{ name: "failure" }, { name: "episodes", number: true }, { name: "for example", long: true }],
    [...byName]
      .sort(([, a], [, b]) => b.length - a.length)
      .map(([name, list]) => [name, count(list.length), list[0].failure.detail]),
  );
}
