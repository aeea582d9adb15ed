// Parts of a whole over iterations as stacked steps, with the names of the parts beside the last ones.
import { linearAxis, type Measure } from "./axis-text.ts";
import { type Column, columnLabel } from "./columns.ts";
import { type Html, html } from "./html.ts";
import type { Tone } from "./line-chart.ts";
import { type Band, frame, hoverColumns, PLOT, place, plotRight, xScale } from "./plot.ts";
import { linearScale, spreadLabels } from "./scale.ts";

export interface StackPart {
  readonly name: string;
  readonly tone: Tone;
  /** One per column; none where the iteration does not say. */
  readonly values: readonly (number | undefined)[];
}

export interface StackedChartOptions {
  readonly description: string;
  readonly unit: string;
  /** Of the numbers in tooltips. */
  readonly format: (value: number) => string;
  readonly measure?: Measure;
  /** Height of the axis; the largest sum when left out. */
  readonly top?: number;
  readonly bands?: readonly Band[];
}

const LABEL_GAP = 12;

/** @param parts from the bottom up @returns undefined when no part has a value above 0 */
export function stackedChart(
  columns: readonly Column[],
  parts: readonly StackPart[],
  { description, unit, format, measure = "number", top, bands }: StackedChartOptions,
): Html | undefined {
  const shown = parts.filter(({ values }) => values.some(value => (value ?? 0) > 0));
  if (shown.length === 0) return undefined;
  const sums = columns.map((_, index) => shown.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const y = linearScale({ low: 0, high: top ?? Math.max(...sums) }, PLOT.bottom, PLOT.top, 4);
  const at = (value: number): number => y.at(value) ?? PLOT.bottom;
  const right = plotRight(shown.map(({ name }) => name));
  const x = xScale(columns, right);
  const below = columns.map(() => 0);
  const areas = shown.map(({ tone, values }) => {
    // Steps there along the tops and back along the bottoms: bars side by side would show seams.
    let tops = "";
    let bottoms = "";
    columns.forEach(({ first, last }, index) => {
      const [left, end] = [place(x.at(first - 0.5)), place(x.at(last + 0.5))];
      bottoms = `V${place(at(below[index]))}H${left}${bottoms}`;
      below[index] += values[index] ?? 0;
      const top = place(at(below[index]));
      tops += index === 0 ? `M${left} ${top}H${end}` : `V${top}H${end}`;
    });
    return html`<path class="bar t${tone}" d="${tops}${bottoms}z"/>`;
  });
  const tooltip = (column: Column, index: number): string =>
    [
      columnLabel(column),
      ...shown.flatMap(({ name, values }) => {
        const value = values[index] ?? 0;
        return value > 0 ? [`${name}: ${format(value)}`] : [];
      }),
    ].join("\n");
  return frame(
    { description, axis: linearAxis(y, measure, unit), x, right, bands },
    html`${areas}${drawNames(shown, at, right)}${hoverColumns(columns, x, right, tooltip)}`,
  );
}

/** Beside the middle of each part in the last column that has any. */
function drawNames(parts: readonly StackPart[], at: (value: number) => number, right: number): Html[] {
  const last = Math.max(...parts.map(({ values }) => values.findLastIndex(value => value !== undefined)));
  let below = 0;
  const wanted = parts.map(({ values }) => {
    const value = values[last] ?? 0;
    below += value;
    return at(below - value / 2);
  });
  const places = spreadLabels(wanted, LABEL_GAP, { low: PLOT.top, high: PLOT.bottom });
  return parts.map(
    ({ name, tone }, index) =>
      html`<text class="name t${tone}" x="${right + 6}" y="${place(places[index] + 4)}">${name}</text>`,
  );
}
