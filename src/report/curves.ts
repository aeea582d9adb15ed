// The curves of a run, in the order of a reader's questions: does it get better, is training exact, is it sane.
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

const one = (name: string, tone: Tone, pick: Pick) => ({ name, tone, pick });

const CURVES: readonly Curve[] = [
  {
    title: "Resolved",
    note: "Episodes whose tests all passed.",
    unit: "share of episodes",
    format: percent,
    include: [0],
    lines: [one("resolved", 1, data => data.metrics?.episodes.resolvedRate)],
    interval: resolvedInterval,
  },
  {
    title: "Reward",
    note: "Mean over the episodes of an iteration.",
    unit: "reward",
    format: significant,
    include: [0],
    lines: [one("reward", 1, data => data.metrics?.episodes.meanReward)],
    interval: meanInterval(({ reward }) => reward),
  },
  {
    title: "Gap between trainer and sampler, |Δ log p|",
    note: "The same tokens scored by both, before training. Replay gives the trainer the sampler's experts (a dense model has none); what stays is the rounding of the published weights.",
    unit: "nats per token",
    format: value => scientific(value, 1),
    scale: "log",
    lines: [
      one("replayed", 1, data => data.metrics?.ppo?.mismatch.replayed?.mean),
      { ...one("replayed p99", 1, data => data.metrics?.ppo?.mismatch.replayed?.p99), thin: true },
      one("free", 2, data => data.metrics?.ppo?.mismatch.free.mean),
      { ...one("free p99", 2, data => data.metrics?.ppo?.mismatch.free.p99), thin: true },
    ],
  },
  {
    title: "Explained variance",
    note: "Of the returns, by the critic's values before it trained on them. 1 is perfect, 0 no better than a constant.",
    unit: "share of variance",
    format: significant,
    include: [0, 1],
    lines: [one("explained variance", 3, data => data.metrics?.ppo?.explainedVariance)],
  },
  {
    title: "Entropy",
    note: "How undecided the policy is. A collapse to 0 ends exploration.",
    unit: "nats per token",
    format: significant,
    include: [0],
    lines: [one("entropy", 4, data => data.metrics?.ppo?.entropy)],
  },
  {
    title: "KL to the policy before the update",
    note: "Mean over the steps of an iteration, each measured as it begins.",
    unit: "nats per token",
    format: significant,
    include: [0],
    lines: [one("KL", 5, data => data.metrics?.ppo?.policy?.klToOld)],
  },
  {
    title: "Clipped tokens",
    note: "Share whose probability ratio left the clip range, over the same steps.",
    unit: "share of tokens",
    format: percent,
    include: [0],
    lines: [one("clipped", 6, data => data.metrics?.ppo?.policy?.clipShare)],
  },
  {
    title: "Gradient norms",
    note: "Before clipping.",
    unit: "norm",
    format: significant,
    scale: "log",
    lines: [
      one("actor", 1, data => data.metrics?.ppo?.policy?.gradientNorm),
      one("critic", 3, data => data.metrics?.ppo?.criticGradientNorm),
    ],
  },
  {
    title: "Loss",
    note: "Cross-entropy of the demonstrated tokens.",
    unit: "nats per token",
    format: significant,
    scale: "log",
    lines: [
      one("mean", 1, data => data.metrics?.sft?.loss),
      one("last step", 2, data => data.metrics?.sft?.lastLoss),
    ],
  },
  {
    title: "Learning rate",
    note: "At the last step of the iteration.",
    unit: "rate",
    format: significant,
    include: [0],
    lines: [one("rate", 4, data => data.metrics?.sft?.learningRate)],
  },
  {
    title: "Turns",
    note: "Answers per episode.",
    unit: "turns",
    format: significant,
    include: [0],
    lines: [one("turns", 7, data => data.metrics?.episodes.meanTurns)],
    interval: meanInterval(({ turnCount }) => turnCount),
  },
  {
    title: "Tokens",
    note: "Per episode; sampled ones are those the policy wrote itself.",
    unit: "tokens",
    format: significant,
    include: [0],
    lines: [
      one("all", 8, data => data.metrics?.episodes.meanTokens),
      one("sampled", 1, data => data.metrics?.episodes.meanSampledTokens),
    ],
  },
];

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
  if (config.kind === "sft") return [];
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
  if (metrics === undefined || metrics.episodes.count === 0) return undefined;
  return (metrics.episodes.endReasons[reason] ?? 0) / metrics.episodes.count;
}
