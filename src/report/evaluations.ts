// Evaluations: rates with their intervals, and the gain of the newest version over the oldest, task by task.
import { type Comparison, describeNothingResolved } from "../evaluation/summary.ts";
import { count, decimals, percent, points, signed } from "./format.ts";
import { type Html, html } from "./html.ts";
import type { EvaluationSeries } from "./read-evaluations.ts";
import type { RunData } from "./read-run.ts";
import { type Bounds, intervalBar } from "./share-bar.ts";
import { table } from "./table.ts";

/** Number of series that have a table. */
const MOST_SERIES = 12;

export function evaluations({ evaluations: all }: RunData): Html {
  if (all.length === 0)
    return html`<section id="evaluations"><h2>Evaluations</h2><p class="empty">None yet. <code>t1 evaluate</code> measures a version on a pool.</p></section>`;
  const shown = all.slice(0, MOST_SERIES);
  return html`<section id="evaluations"><h2>Evaluations</h2>
<p class="lead">Intervals are 95 %: of what was resolved Wilson’s and, for a gain, Newcombe’s for pairs, with repeats of a task counted for what they tell; of rewards by bootstrap over tasks. A gain is paired: the same tasks, after minus before.</p>
${shown.map(drawSeries)}
${all.length > shown.length && html`<p class="omitted">${count(all.length - shown.length)} more series are left out</p>`}</section>`;
}

function drawSeries({ title, evaluations: members, gain }: EvaluationSeries): Html {
  const rates = table(
    [
      { name: "version" },
      { name: "tasks", number: true },
      { name: "episodes", number: true },
      { name: "resolved", number: true },
      { name: "95 %", number: true },
      { name: "reward", number: true },
      { name: "95 %", number: true },
      { name: "missing", number: true },
      { name: "if all missing failed", number: true },
    ],
    members.map(({ version, summary }) => [
      `v${version}`,
      count(summary.taskCount),
      count(summary.episodeCount),
      percent(summary.resolved.mean),
      `${percent(summary.resolved.low)} – ${percent(summary.resolved.high)}`,
      decimals(summary.reward.mean, 3),
      `${decimals(summary.reward.low, 3)} – ${decimals(summary.reward.high, 3)}`,
      summary.valid
        ? count(summary.missingCount)
        : html`<b class="bad">${count(summary.missingCount)}: invalid</b>`,
      percent(summary.worstCase),
    ]),
  );
  const [before, after] = [members[0], members[members.length - 1]];
  const nothing = describeNothingResolved(before.summary, after.summary);
  return html`<h3>${title}</h3>${rates}${nothing !== undefined && html`<p>${nothing}</p>`}${
    gain !== undefined && html`<h4>Gain of v${after.version} over v${before.version}</h4>${gainTable(gain)}`
  }`;
}

function gainTable(gain: Comparison): Html {
  const all = [
    { name: "all tasks", ...gain },
    ...Object.entries(gain.groups).map(([name, group]) => ({ name, ...group })),
  ];
  const rows = all.filter(({ taskCount }) => taskCount > 0);
  const edges = rows.flatMap(({ resolved }) => [resolved.low, resolved.high]);
  const span = { low: Math.min(0, ...edges), high: Math.max(0, ...edges) };
  const bounds = ({ low, high }: Bounds): string => `${points(low)} to ${points(high)}`;
  return table(
    [
      { name: "group" },
      { name: "tasks", number: true },
      { name: "resolved, points", number: true },
      { name: "" },
      { name: "95 %", number: true },
      { name: "reward", number: true },
      { name: "95 %", number: true },
    ],
    rows.map(({ name, taskCount, resolved, reward }) => [
      name,
      count(taskCount),
      points(resolved.mean),
      taskCount > 1 && intervalBar(resolved, span),
      taskCount > 1 ? bounds(resolved) : "one task",
      signed(reward.mean, 3),
      taskCount > 1 ? `${signed(reward.low, 3)} to ${signed(reward.high, 3)}` : "one task",
    ]),
  );
}
