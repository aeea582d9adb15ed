// Drawings over iterations as SVG, with paths of d3: curves with dots, averages and intervals, and stacked parts of a
// whole. No script: hovering is CSS and <title>.
import { scaleLinear } from "d3-scale";
import { area, line as linePath } from "d3-shape";
import { type Axis, linearAxis, logAxis } from "./axes.ts";
import { type Column, columnLabel } from "./columns.ts";
import { type Html, html } from "./html.ts";

/** Number of a colour of the style sheet. */
export type Tone = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface Series {
  readonly name: string;
  readonly tone: Tone;
  /** One value per column; undefined where the column has none. */
  readonly values: readonly (number | undefined)[];
  /** 95 % intervals of the averages, one per column. */
  readonly intervals?: readonly (Interval | undefined)[];
  /** A companion of another line (a 99th percentile): thin, without dots. */
  readonly thin?: boolean;
}

/** An evaluation beside the curve. */
export interface Measurement extends Interval {
  readonly version: number;
  readonly mean: number;
  readonly tone: Tone;
  readonly label: string;
}

/** Iterations in which something held, e.g. that only the critic learned. */
export interface Band {
  readonly first: number;
  readonly last: number;
  readonly label: string;
}

export interface ChartOptions {
  /** Read to people who do not see the drawing. */
  readonly description: string;
  readonly unit: string;
  /** Writes the numbers of tooltips. */
  readonly format: (value: number) => string;
  readonly bands?: readonly Band[];
}

export interface LineChartOptions extends ChartOptions {
  readonly scale?: "linear" | "log";
  /** Values that the axis reaches at least. */
  readonly include?: readonly number[];
  readonly measurements?: readonly Measurement[];
}

const WIDTH = 420;
const HEIGHT = 216;
const PLOT = { left: 46, top: 24, bottom: 182 } as const;
/** Width of a letter of the labels; generous, since the font is the reader's. */
const LETTER_WIDTH = 8.2;
const LABEL_GAP = 12;

/** Iterations of a moving average: a twelfth of the run, odd, and none in a short one. */
export function smoothingWindow(columnCount: number): number {
  const window = Math.min(9, Math.round(columnCount / 12));
  return window < 2 ? 1 : window + 1 - (window % 2);
}

/** @returns undefined when no series has a value that can be drawn */
export function lineChart(
  columns: readonly Column[],
  series: readonly Series[],
  { scale, include = [], measurements = [], ...options }: LineChartOptions,
): Html | undefined {
  const window = smoothingWindow(columns.length);
  const lines = series
    .filter(({ values }) => values.some(value => value !== undefined && (scale !== "log" || value > 0)))
    .map(one => ({ ...one, average: movingAverage(one.values, window) }));
  if (lines.length === 0) return undefined;
  // Thin lines count only by their average, so that one outlier does not flatten the others.
  const numbers = [
    ...lines.flatMap(({ values, average, thin }) => (thin ? average : values)),
    ...[...lines.flatMap(({ intervals = [] }) => intervals), ...measurements].flatMap(one =>
      one === undefined ? [] : [one.low, one.high],
    ),
    ...include,
  ].filter(value => value !== undefined);
  const y = (scale === "log" ? logAxis : linearAxis)(numbers, [PLOT.bottom, PLOT.top], options.unit);
  if (y === undefined) return undefined;
  const named = lines.length > 1 ? lines : [];
  const x = xAxis(columns, named);
  const ends = named.map(({ average }) => y.at(average.findLast(value => value !== undefined) ?? 0));
  return frame(x, y, lines, columns, options, [
    lines.map(one => drawLine(one, columns, x, y)),
    measurements.map(one => drawMeasurement(one, x, y, options.format)),
    drawNames(named, ends, x),
  ]);
}

/** @param parts from the bottom up @param top of the axis; the largest sum by default */
export function stackedChart(
  columns: readonly Column[],
  parts: readonly Series[],
  { top, ...options }: ChartOptions & { readonly top?: number },
): Html | undefined {
  const shown = parts.filter(({ values }) => values.some(value => (value ?? 0) > 0));
  if (shown.length === 0) return undefined;
  const sums = columns.map((_, index) => shown.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const y = linearAxis([0, top ?? Math.max(...sums)], [PLOT.bottom, PLOT.top], options.unit);
  if (y === undefined) return undefined;
  const x = xAxis(columns, shown);
  const last = Math.max(...shown.map(({ values }) => values.findLastIndex(value => value !== undefined)));
  const middles: (number | undefined)[] = [];
  let below = columns.map(() => 0);
  const areas = shown.map(({ tone, values }) => {
    const bottom = below;
    below = bottom.map((sum, index) => sum + (values[index] ?? 0));
    middles.push(y.at((bottom[last] + below[last]) / 2));
    return html`<path class="bar t${tone}" d="${steps(columns, bottom, below, x, y)}"/>`;
  });
  return frame(x, y, shown, columns, options, [areas, drawNames(shown, middles, x)]);
}

interface XAxis {
  /** Place of an iteration, counted from 1; half an iteration of room stays at both ends. */
  readonly at: (iteration: number) => number;
  readonly ticks: readonly number[];
  readonly right: number;
}

/** @param named series whose names stand right of the plot */
function xAxis(columns: readonly Column[], named: readonly Series[]): XAxis {
  const longest = Math.max(0, ...named.map(({ name }) => name.length));
  const right = WIDTH - (longest === 0 ? 10 : 12 + longest * LETTER_WIDTH);
  const domain = [columns[0].first - 0.5, columns[columns.length - 1].last + 0.5];
  const scale = scaleLinear().domain(domain).range([PLOT.left, right]);
  return { at: scale, ticks: scale.ticks(6).filter(Number.isInteger), right };
}

/** Coordinates to a tenth: finer ones cannot be seen. */
export function place(value: number): number {
  return Math.round(value * 10) / 10;
}

function frame(
  x: XAxis,
  y: Axis,
  series: readonly Series[],
  columns: readonly Column[],
  { description, format, bands = [] }: ChartOptions,
  content: readonly (readonly Html[])[],
): Html {
  const height = PLOT.bottom - PLOT.top;
  const strip = (first: number, last: number, title: string): Html => {
    const [left, right] = [Math.max(PLOT.left, x.at(first - 0.5)), Math.min(x.right, x.at(last + 0.5))];
    return html`<rect x="${place(left)}" y="${PLOT.top}" width="${place(Math.max(1, right - left))}" height="${height}"><title>${title}</title></rect>`;
  };
  return html`<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${description}">
<g class="band">${bands.map(({ first, last, label }) => strip(first, last, label))}</g>
<path class="grid" d="${y.ticks.map(({ at }) => `M${PLOT.left} ${place(at)}H${place(x.right)}`).join("")}"/>
<g class="axis">
${y.ticks.map(({ at, text }) => html`<text class="y" x="${PLOT.left - 6}" y="${place(at + 4)}">${text}</text>`)}
${x.ticks.map(tick => html`<text class="x" x="${place(x.at(tick))}" y="${PLOT.bottom + 16}">${tick}</text>`)}
<text class="unit" x="4" y="12">${y.unit}</text>
<text class="unit x" x="${place((PLOT.left + x.right) / 2)}" y="${HEIGHT - 3}">iteration</text>
</g>
${content}
<g class="hover">${columns.map((column, index) => strip(column.first, column.last, tooltip(column, index, series, format)))}</g>
</svg>`;
}

/** The numbers of a column. An invisible strip over the plot carries them and shows itself under the pointer. */
function tooltip(
  column: Column,
  index: number,
  series: readonly Series[],
  format: (value: number) => string,
): string {
  const numbers = series.flatMap(({ name, values }) => {
    const value = values[index];
    return value === undefined ? [] : [`${series.length > 1 ? `${name}: ` : ""}${format(value)}`];
  });
  return [columnLabel(column), ...numbers].join("\n");
}

interface Line extends Series {
  readonly average: readonly (number | undefined)[];
}

function drawLine(
  { tone, values, average, intervals, thin }: Line,
  columns: readonly Column[],
  x: XAxis,
  y: Axis,
): Html {
  const points = columns.map(({ first, last }, index) => ({
    x: x.at((first + last) / 2),
    value: placeOf(values[index], y),
    average: placeOf(average[index], y),
    low: placeOf(intervals?.[index]?.low, y),
    high: placeOf(intervals?.[index]?.high, y),
  }));
  const path = linePath<(typeof points)[number]>(
    one => one.x,
    one => one.average ?? 0,
  )
    .defined(one => one.average !== undefined)
    .digits(1);
  if (thin) return html`<path class="line thin t${tone}" d="${path(points) ?? ""}"/>`;
  const interval = area<(typeof points)[number]>(
    one => one.x,
    one => one.low ?? 0,
    one => one.high ?? 0,
  )
    .defined(({ low, high }) => low !== undefined && high !== undefined)
    .digits(1);
  const radius = columns.length <= 24 ? 3 : columns.length <= 60 ? 2 : 1.5;
  const dots = points.flatMap(one =>
    one.value === undefined
      ? []
      : [html`<circle cx="${place(one.x)}" cy="${place(one.value)}" r="${radius}"/>`],
  );
  return html`${intervals !== undefined && html`<path class="interval t${tone}" d="${interval(points) ?? ""}"/>`}<g class="dots t${tone}">${dots}</g><path class="line t${tone}" d="${path(points) ?? ""}"/>`;
}

function placeOf(value: number | undefined, y: Axis): number | undefined {
  return value === undefined ? undefined : y.at(value);
}

/** An iteration makes the version of its number, so a version stands behind its iteration. */
function drawMeasurement(
  { version, mean, low, high, tone, label }: Measurement,
  x: XAxis,
  y: Axis,
  format: (value: number) => string,
): Html {
  const at = place(Math.max(PLOT.left, Math.min(x.right, x.at(version + 0.5))));
  const [top, middle, bottom] = [high, mean, low].map(value => place(y.at(value) ?? PLOT.bottom));
  return html`<g class="measurement m${tone}"><title>${label}
${format(mean)}, 95 % from ${format(low)} to ${format(high)}</title><path d="M${at} ${top}V${bottom}"/><circle cx="${at}" cy="${middle}" r="3.5"/></g>`;
}

/** Steps along the tops and back along the bottoms, because bars side by side would show seams. */
function steps(
  columns: readonly Column[],
  bottoms: readonly number[],
  tops: readonly number[],
  x: XAxis,
  y: Axis,
): string {
  const corners = columns.flatMap(({ first, last }, index) =>
    [first - 0.5, last + 0.5].map(at => ({ at, low: bottoms[index], high: tops[index] })),
  );
  const path = area<(typeof corners)[number]>(
    ({ at }) => x.at(at),
    ({ low }) => y.at(low) ?? PLOT.bottom,
    ({ high }) => y.at(high) ?? PLOT.bottom,
  );
  return path.digits(1)(corners) ?? "";
}

/** Names right of the plot, near their wanted places. */
function drawNames(series: readonly Series[], wanted: readonly (number | undefined)[], x: XAxis): Html[] {
  const places = spreadLabels(
    wanted.map(at => at ?? PLOT.bottom),
    LABEL_GAP,
    { low: PLOT.top, high: PLOT.bottom },
  );
  return series.map(
    ({ name, tone }, index) =>
      html`<text class="name t${tone}" x="${place(x.right + 6)}" y="${place(places[index] + 4)}">${name}</text>`,
  );
}

/** Places for labels beside a drawing: near where they belong, none over another, all within the span. */
export function spreadLabels(wanted: readonly number[], gap: number, { low, high }: Interval): number[] {
  const order = wanted.map((at, index) => ({ at, index })).sort((a, b) => a.at - b.at);
  const placed = new Array<number>(wanted.length);
  let next = low;
  for (const { at, index } of order) {
    placed[index] = Math.max(at, next);
    next = placed[index] + gap;
  }
  let limit = high;
  for (const { index } of order.reverse()) {
    placed[index] = Math.min(placed[index], limit);
    limit = placed[index] - gap;
  }
  return placed;
}

/**
 * Mean of the values around each one; at the ends, of those that are there.
 *
 * @param window odd number of neighbours, itself included
 */
export function movingAverage(
  values: readonly (number | undefined)[],
  window: number,
): (number | undefined)[] {
  return values.map((own, index) => {
    const near = windowAround(values, index, window).filter(value => value !== undefined);
    return own === undefined ? undefined : near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

/** The neighbours of a place in a list, itself included. @param window odd number of them */
export function windowAround<T>(list: readonly T[], index: number, window: number): readonly T[] {
  const half = (window - 1) / 2;
  return list.slice(Math.max(0, index - half), index + half + 1);
}
