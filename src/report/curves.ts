// The curves of a run, in the order of a reader's questions: does it get better, is training exact, is it sane.

import { METRIC_NAMES, type MetricName, metricOf } from "../training/metrics.ts";
import {
  type Band,
  type Interval,
  type LineChartOptions,
  lineChart,
  type Measurement,
  type Series,
  smoothingWindow,
  stackedChart,
  type Tone,
  windowAround,
} from "./chart.ts";
import { type Column, columnMean, columnsOf } from "./columns.ts";
import { percent, scientific, significant } from "./format.ts";
import { type Html, html } from "./html.ts";
import { meanInterval, resolvedInterval } from "./intervals.ts";
import type { IterationData, RunData } from "./read-run.ts";
import { table } from "./table.ts";
import { shorten } from "./visible-text.ts";

type Pick = (data: IterationData) => number | undefined;

interface Curve extends Omit<LineChartOptions, "description" | "bands"> {
  readonly title: string;
  readonly note: string;
  readonly lines: readonly {
    readonly name: string;
    readonly tone: Tone;
    readonly pick: Pick;
    readonly thin?: boolean;
  }[];
  /** 95 % interval of the mean over the episodes of some iterations. */
  readonly interval?: (iterations: readonly IterationData[]) => Interval | undefined;
}

export function curves(run: RunData): Html {
  const trained = run.iterations.filter(({ metrics }) => metrics !== undefined);
  if (trained.length === 0)
    return html`<section id="curves"><h2>Curves</h2><p class="empty">No iteration was trained yet.</p></section>`;
  const columns = columnsOf(trained);
  const bands = bandsOf(run, trained);
  const charts = [
    ...CURVES.map(curve =>
      drawCurve(curve, columns, bands, curve.title === "Resolved" ? measurementsOf(run) : []),
    ),
    drawEndReasons(columns, bands),
  ];
  const window = smoothingWindow(columns.length);
  const smoothing =
    window === 1
      ? "Each dot is one iteration, a light band its 95 % interval."
      : `Dots are iterations, lines the mean of ${window} around each. A light band is the 95 % interval of the line.`;
  return html`<section id="curves"><h2>Curves</h2>
<p class="lead">${smoothing} ${bands.length > 0 && `Shaded: ${bands[0].label}.`} Point at a column to read its numbers, or open the table below.</p>
<div class="charts">${charts}</div>${numbers(trained)}</section>`;
}

/** Metrics whose chart has a band: the 95 % interval over an iteration's episodes. */
const INTERVALS: { readonly [metric in MetricName]?: Curve["interval"] } = {
  "episodes.resolvedRate": resolvedInterval,
  "episodes.meanReward": meanInterval(({ reward }) => reward),
  "episodes.meanTurns": meanInterval(({ turnCount }) => turnCount),
};

const TONES: readonly Tone[] = [1, 2, 3, 4, 5, 6, 7, 8];

/** Every chart that the table of metrics names, in its order; what the first metric says is said of the chart. */
const CURVES: readonly Curve[] = [
  ...Map.groupBy(
    METRIC_NAMES.filter(name => metricOf(name).curve),
    name => metricOf(name).curve?.chart ?? "",
  ),
].map(([title, names], index): Curve => {
  const { unit, says, curve } = metricOf(names[0]);
  const isShare = /^share of (episodes|tokens)$/.test(unit);
  const isGap = names[0].startsWith("mismatch.");
  let tone = index - 1;
  return {
    title,
    note: says,
    unit,
    ...(curve?.scale === "log"
      ? { scale: "log" as const }
      : { include: unit === "share of variance" ? [0, 1] : [0] }),
    format: isShare ? percent : isGap ? value => scientific(value, 1) : significant,
    lines: names.map(name => {
      const { line = name, thin = false } = metricOf(name).curve ?? {};
      if (!thin) tone++;
      return {
        name: line,
        tone: TONES[tone % TONES.length],
        pick: data => data.metrics?.numbers[name],
        thin,
      };
    }),
    interval: INTERVALS[names[0]],
  };
});

function drawCurve(
  { title, note, lines, interval, ...options }: Curve,
  columns: readonly Column[],
  bands: readonly Band[],
  measurements: readonly NamedMeasurement[],
): Html | undefined {
  const window = smoothingWindow(columns.length);
  const series: Series[] = lines.map(({ name, tone, pick, thin }) => ({
    name,
    tone,
    thin,
    values: columns.map(column => columnMean(column, pick)),
    intervals:
      interval &&
      columns.map((_, index) =>
        interval(windowAround(columns, index, window).flatMap(({ members }) => members)),
      ),
  }));
  const drawing = lineChart(columns, series, {
    ...options,
    description: `${title}: ${note}`,
    bands,
    measurements,
  });
  const keys = [...new Map(measurements.map(one => [one.series, one.tone]))];
  const more =
    keys.length > 0 &&
    html` Marks with intervals are evaluations: ${keys.map(([name, tone]) => html`<span class="key m${tone}">${shorten(name, LONGEST_KEY)}</span> `)}`;
  return drawing && figure(title, html`${note}${more}`, drawing);
}

const LONGEST_KEY = 60;

/** Rows of the table; a longer run has neighbours in one row. */
const MOST_ROWS = 1000;

/** Every number that is drawn, for readers who cannot point at a curve. */
function numbers(trained: readonly IterationData[]): Html {
  const columns = columnsOf(trained, MOST_ROWS);
  const lines = CURVES.flatMap(({ title, lines: own, format }) =>
    own.map(({ name, pick }) => ({
      name: own.length > 1 ? `${title}, ${name}` : title,
      values: columns.map(column => columnMean(column, pick)),
      format,
    })),
  ).filter(({ values }) => values.some(value => value !== undefined));
  const rows = columns.map(({ first, last }, index) => [
    first === last ? `${first}` : `${first}–${last}`,
    ...lines.map(({ values, format }) => (values[index] === undefined ? "–" : format(values[index]))),
  ]);
  const heads = lines.map(({ name }) => ({ name, number: true }));
  return html`<details class="numbers"><summary>Every iteration in numbers</summary>${table([{ name: "iteration" }, ...heads], rows, MOST_ROWS)}</details>`;
}

function figure(title: string, note: Html, drawing: Html): Html {
  return html`<figure><figcaption><h3>${title}</h3><p>${note}</p></figcaption>${drawing}</figure>`;
}

/** More marks than this overlap each other. */
const MOST_MEASUREMENTS = 60;

/** Tones of the series of evaluations, apart from that of the curve. */
const SERIES_TONES: readonly Tone[] = [2, 3, 4, 5, 6, 7, 8];

interface NamedMeasurement extends Measurement {
  readonly series: string;
}

function measurementsOf({ evaluations }: RunData): NamedMeasurement[] {
  return evaluations
    .flatMap(({ title, evaluations: members }, index) =>
      members.map(({ version, summary: { resolved } }) => ({
        version,
        ...resolved,
        series: title,
        tone: SERIES_TONES[index % SERIES_TONES.length],
        label: `${title}, version ${version}`,
      })),
    )
    .slice(0, MOST_MEASUREMENTS);
}

function bandsOf({ record: { config } }: RunData, trained: readonly IterationData[]): Band[] {
  if (config.algorithm !== "ppo") return [];
  const last = Math.min(config.training.critic.onlyIterations, trained[trained.length - 1].iteration + 1);
  const first = trained[0].iteration + 1;
  return last < first ? [] : [{ first, last, label: "only the critic learns" }];
}

/** From the policy's own decision to the cuts. */
const END_REASON_TONES: readonly (readonly [reason: string, name: string, tone: Tone])[] = [
  ["completed", "completed", 3],
  ["turn_limit", "turn limit", 2],
  ["context_limit", "context limit", 6],
  ["time_limit", "time limit", 4],
  ["agent_error", "agent error", 5],
];

/** Where every column completed all but this share, the completed part is left out: it would hide the others. */
const SMALL_SHARE = 0.3;

function drawEndReasons(columns: readonly Column[], bands: readonly Band[]): Html | undefined {
  const parts = END_REASON_TONES.map(([reason, name, tone]) => ({
    name,
    tone,
    values: columns.map(column => columnMean(column, data => endShare(data, reason))),
  }));
  const [completed, ...others] = parts;
  const leavesMost = completed.values.every(value => value === undefined || value > 1 - SMALL_SHARE);
  const isShort = leavesMost && others.some(({ values }) => values.some(value => (value ?? 0) > 0));
  const note = isShort
    ? "Why episodes ended; those that are not drawn ended because the policy said that it was done."
    : "Why episodes ended; completed: the policy said that it was done.";
  const drawing = stackedChart(columns, isShort ? others : parts, {
    description: `End reasons: ${note}`,
    unit: "share of episodes",
    format: percent,
    top: isShort ? undefined : 1,
    bands,
  });
  return drawing && figure("End reasons", html`${note}`, drawing);
}

function endShare({ metrics }: IterationData, reason: string): number | undefined {
  const count = metrics?.numbers["episodes.count"];
  return count === undefined || count === 0 ? undefined : (metrics?.endReasons[reason] ?? 0) / count;
}
