// The time of a run by stage: stacked bars over the iterations, and totals.
import { stackedChart, type Tone } from "./chart.ts";
import { columnMean, columnsOf } from "./columns.ts";
import { duration, percent, significant } from "./format.ts";
import { type Html, html } from "./html.ts";
import type { RunData } from "./read-run.ts";
import { table } from "./table.ts";

/** Stages in the order in which they run; others come after them. */
const STAGES: readonly (readonly [stage: string, tone: Tone, what: string])[] = [
  ["evaluate", 4, "evaluations during the run"],
  ["plan", 7, "choosing tasks"],
  ["prepare", 8, "loading tasks"],
  ["rollout", 1, "episodes: sampler, sandboxes, verifiers"],
  ["score", 6, "rewards from reports"],
  ["close", 5, "the list of what counts"],
  ["train", 2, "updates of the networks"],
  ["publish", 3, "the next policy"],
];

/** Stages below this share of the time are one part of the drawing; the table has each of them. */
const SMALL_SHARE = 0.02;

export function stageTimes({ iterations }: RunData): Html {
  const timed = iterations.filter(({ timings }) => timings !== undefined);
  if (timed.length === 0)
    return html`<section id="time"><h2>Time</h2><p class="empty">No iteration was timed from its first to its last stage.</p></section>`;
  const known = STAGES.map(([stage]) => stage);
  const others = timed
    .flatMap(({ timings }) => Object.keys(timings ?? {}))
    .filter(stage => !known.includes(stage));
  const stages = [
    ...STAGES,
    ...[...new Set(others)].sort().map((stage): (typeof STAGES)[number] => [stage, 8, ""]),
  ];
  const totalOf = (stage: string): number =>
    timed.reduce((sum, { timings }) => sum + (timings?.[stage] ?? 0), 0);
  const all = stages.reduce((sum, [stage]) => sum + totalOf(stage), 0);
  const small = stages.filter(([stage]) => totalOf(stage) < SMALL_SHARE * all).map(([stage]) => stage);
  const columns = columnsOf(iterations);
  const secondsOf = (names: readonly string[]) =>
    columns.map(column =>
      columnMean(
        column,
        ({ timings }) => timings && names.reduce((sum, name) => sum + (timings[name] ?? 0), 0) / 1000,
      ),
    );
  const drawing = stackedChart(
    columns,
    [
      ...stages
        .filter(([stage]) => !small.includes(stage))
        .map(([stage, tone]) => ({ name: stage, tone, values: secondsOf([stage]) })),
      { name: "others", tone: 8, values: secondsOf(small) },
    ],
    { description: "Time of each stage per iteration", unit: "seconds per iteration", format: significant },
  );
  const rows = stages.flatMap(([stage, , what]) => {
    const times = timed.flatMap(({ timings }) => timings?.[stage] ?? []).sort((a, b) => a - b);
    if (times.length === 0) return [];
    const total = times.reduce((sum, time) => sum + time, 0);
    const middle = times[Math.floor(times.length / 2)];
    return [
      [
        stage,
        duration(total),
        percent(total / all),
        duration(middle),
        duration(times[times.length - 1]),
        what,
      ],
    ];
  });
  const missing = iterations.length - timed.length;
  return html`<section id="time"><h2>Time</h2>
${missing > 0 && html`<p class="lead">${missing} of ${iterations.length} iterations have no times: they are at work, or their runner was replaced half-way.</p>`}
<div class="pair"><figure><figcaption><h3>Stages</h3><p>Wall time of each iteration.</p></figcaption>${drawing}</figure>
${table(
  [
    { name: "stage" },
    { name: "total", number: true },
    { name: "share", number: true },
    { name: "median", number: true },
    { name: "longest", number: true },
    { name: "" },
  ],
  [...rows, ["all", duration(all), percent(1), "", "", ""]],
)}</div></section>`;
}
