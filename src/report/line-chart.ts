// A curve over iterations as SVG: raw values as dots, their moving average as a line, names beside the lines' ends, and
// the numbers of each column in its tooltip. No script: hovering is CSS and <title>.
import { linearAxis, logAxis, type Measure } from "./axis-text.ts";
import { type Column, columnLabel } from "./columns.ts";
import { type Html, html } from "./html.ts";
import { type Band, frame, hoverColumns, PLOT, place, plotRight, xScale } from "./plot.ts";
import { linearScale, logScale, movingAverage, type Scale, spanOf, spreadLabels } from "./scale.ts";

/** Number of a colour of the style sheet. */
export type Tone = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

export interface Series {
  readonly name: string;
  readonly tone: Tone;
  /** One per column. */
  readonly values: readonly (number | undefined)[];
  /** A companion of another line (a 99th percentile): thin, without dots. */
  readonly thin?: boolean;
}

/** A measurement with its interval beside the curve: an evaluation. */
export interface Measurement {
  readonly at: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  readonly label: string;
}

export interface LineChartOptions {
  /** Said to readers who do not see the drawing. */
  readonly description: string;
  readonly unit: string;
  /** Of the numbers in tooltips. */
  readonly format: (value: number) => string;
  readonly measure?: Measure;
  readonly scale?: "linear" | "log";
  /** The axis reaches at least from here … to here. */
  readonly include?: readonly number[];
  readonly bands?: readonly Band[];
  readonly measurements?: readonly Measurement[];
}

/** Iterations of a moving average: a twelfth of the run, odd, and none in a short one. */
export function smoothingWindow(columnCount: number): number {
  const window = Math.min(9, Math.round(columnCount / 12));
  return window < 2 ? 1 : window + 1 - (window % 2);
}

/** @returns undefined when no series has a value that can be drawn */
export function lineChart(
  columns: readonly Column[],
  series: readonly Series[],
  {
    description,
    unit,
    format,
    measure = "number",
    scale: kind = "linear",
    include = [],
    bands,
    measurements = [],
  }: LineChartOptions,
): Html | undefined {
  const window = smoothingWindow(columns.length);
  const lines = series
    .map(one => ({ ...one, average: movingAverage(one.values, window) }))
    .filter(({ values }) => values.some(value => value !== undefined && (kind === "linear" || value > 0)));
  if (lines.length === 0) return undefined;

  // Thin lines count only by their average, so that one outlier does not flatten the others.
  const drawn = lines.flatMap(({ values, average, thin }) => (thin ? average : values));
  const numbers = [...drawn, ...measurements.flatMap(({ low, high }) => [low, high]), ...include].filter(
    value => value !== undefined,
  );
  const span = spanOf(kind === "log" ? numbers.filter(value => value > 0) : numbers);
  if (span === undefined) return undefined;
  const y =
    kind === "log" ? logScale(span, PLOT.bottom, PLOT.top) : linearScale(span, PLOT.bottom, PLOT.top, 4);
  const axis = kind === "log" ? logAxis(y, unit) : linearAxis(y, measure, unit);
  const named = lines.length > 1 ? lines : [];
  const right = plotRight(named.map(({ name }) => name));
  const x = xScale(
    columns,
    right,
    measurements.map(({ at }) => at),
  );

  const tooltip = (column: Column, index: number): string =>
    [
      columnLabel(column),
      ...lines.flatMap(({ name, values }) => {
        const value = values[index];
        return value === undefined ? [] : [`${lines.length > 1 ? `${name}: ` : ""}${format(value)}`];
      }),
    ].join("\n");

  return frame(
    { description, axis, x, right, bands },
    html`${lines.map(line => drawLine(line, columns, x.at, y))}${measurements.map(one => drawMeasurement(one, x.at, y, format))}${drawNames(named, y, right)}${hoverColumns(columns, x, right, tooltip)}`,
  );
}

interface Line extends Series {
  readonly average: readonly (number | undefined)[];
}

function drawLine(
  { tone, values, average, thin }: Line,
  columns: readonly Column[],
  xAt: (position: number) => number,
  y: Scale,
): Html {
  const pointOf = (value: number | undefined, index: number): readonly [number, number] | undefined => {
    const height = value === undefined ? undefined : y.at(value);
    return height === undefined ? undefined : [middleOf(columns[index], xAt), height];
  };
  const path = pathOf(average.map(pointOf));
  if (thin) return html`<path class="line thin t${tone}" d="${path}"/>`;
  const dots = values.flatMap((value, index) => {
    const at = pointOf(value, index);
    return at === undefined
      ? []
      : [html`<circle cx="${place(at[0])}" cy="${place(at[1])}" r="${dotRadius(columns.length)}"/>`];
  });
  return html`<g class="dots t${tone}">${dots}</g><path class="line t${tone}" d="${path}"/>`;
}

function drawMeasurement(
  { at, mean, low, high, label }: Measurement,
  xAt: (position: number) => number,
  y: Scale,
  format: (value: number) => string,
): Html | undefined {
  const [top, middle, bottom] = [y.at(high), y.at(mean), y.at(low)];
  if (top === undefined || middle === undefined || bottom === undefined) return undefined;
  const x = place(xAt(at));
  return html`<g class="measurement"><title>${label}
${format(mean)}, 95 % from ${format(low)} to ${format(high)}</title><path d="M${x} ${place(top)}V${place(bottom)}"/><circle cx="${x}" cy="${place(middle)}" r="3"/></g>`;
}

function dotRadius(columnCount: number): number {
  if (columnCount <= 24) return 3;
  return columnCount <= 60 ? 2 : 1.5;
}

const LABEL_GAP = 12;

function drawNames(lines: readonly Line[], y: Scale, right: number): Html[] {
  const ends = lines.map(({ average }) => {
    const last = average.findLast(value => value !== undefined);
    return (last === undefined ? undefined : y.at(last)) ?? PLOT.bottom;
  });
  const places = spreadLabels(ends, LABEL_GAP, { low: PLOT.top, high: PLOT.bottom });
  return lines.map(
    ({ name, tone }, index) =>
      html`<text class="name t${tone}" x="${right + 6}" y="${place(places[index] + 4)}">${name}</text>`,
  );
}

function middleOf({ first, last }: Column, xAt: (position: number) => number): number {
  return xAt((first + last) / 2);
}

function pathOf(points: readonly (readonly [number, number] | undefined)[]): string {
  let path = "";
  let pen: "M" | "L" = "M";
  for (const point of points) {
    if (point !== undefined) path += `${pen}${place(point[0])} ${place(point[1])}`;
    pen = point === undefined ? "M" : "L";
  }
  return path;
}
