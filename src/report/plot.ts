// What every drawing over iterations has in common: its size, axes, shaded bands, and the columns that show tooltips.
import type { AxisText } from "./axis-text.ts";
import type { Column } from "./columns.ts";
import { type Html, html } from "./html.ts";
import { wholeTicks } from "./scale.ts";

const WIDTH = 420;
const HEIGHT = 216;
/** The plot within the drawing; its right end depends on what is written beside it. */
export const PLOT = { left: 46, top: 24, bottom: 182 } as const;
/** Of a letter of the labels, in units of the drawing; generous, since the font is the reader's. */
const LETTER_WIDTH = 8.2;
const MIN_COLUMN_WIDTH = 1;

/** Iterations in which something held, e.g. that only the critic learned. */
export interface Band {
  readonly first: number;
  readonly last: number;
  readonly label: string;
}

export interface XScale {
  readonly at: (position: number) => number;
  readonly ticks: readonly number[];
  /** Width of one iteration. */
  readonly step: number;
}

/** Right end of a plot that has these names beside it. */
export function plotRight(names: readonly string[]): number {
  const longest = Math.max(0, ...names.map(name => name.length));
  return WIDTH - (longest === 0 ? 10 : 12 + longest * LETTER_WIDTH);
}

/** Half an iteration of room at both ends, so that bars and dots do not touch the frame. */
export function xScale(columns: readonly Column[], right: number, others: readonly number[] = []): XScale {
  const low = Math.min(columns[0].first, ...others);
  const high = Math.max(columns[columns.length - 1].last, ...others);
  const step = (right - PLOT.left) / (high - low + 1);
  return {
    at: position => PLOT.left + (position - low + 0.5) * step,
    ticks: wholeTicks({ low, high }, 6),
    step,
  };
}

export interface FrameOptions {
  readonly description: string;
  readonly axis: AxisText;
  readonly x: XScale;
  readonly right: number;
  readonly bands?: readonly Band[];
}

/** Axes around the content of a plot. */
export function frame({ description, axis, x, right, bands = [] }: FrameOptions, content: Html): Html {
  return html`<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${description}">
${bands.map(band => drawBand(band, x))}
<path class="grid" d="${axis.ticks.map(({ at }) => `M${PLOT.left} ${place(at)}H${place(right)}`).join("")}"/>
<g class="axis">
${axis.ticks.map(({ at, text }) => html`<text class="y" x="${PLOT.left - 6}" y="${place(at + 4)}">${text}</text>`)}
${x.ticks.map(tick => html`<text class="x" x="${place(x.at(tick))}" y="${PLOT.bottom + 16}">${tick}</text>`)}
<text class="unit" x="4" y="12">${axis.unit}</text>
<text class="unit x" x="${place((PLOT.left + right) / 2)}" y="${HEIGHT - 3}">iteration</text>
</g>
${content}
</svg>`;
}

/** Coordinates to a tenth: finer ones cannot be seen. */
export function place(value: number): number {
  return Math.round(value * 10) / 10;
}

function drawBand({ first, last, label }: Band, x: XScale): Html {
  const [left, right] = [x.at(first - 0.5), x.at(last + 0.5)];
  return html`<g class="band"><rect x="${place(left)}" y="${PLOT.top}" width="${place(right - left)}" height="${PLOT.bottom - PLOT.top}"/><title>${label}</title></g>`;
}

/** One invisible strip per column over the whole plot; the one under the pointer shows itself and its numbers. */
export function hoverColumns(
  columns: readonly Column[],
  x: XScale,
  right: number,
  tooltip: (column: Column, index: number) => string,
): Html {
  return html`<g class="hover">${columns.map((column, index) => {
    const left = Math.max(PLOT.left, x.at(column.first - 0.5));
    const width = Math.max(MIN_COLUMN_WIDTH, Math.min(right, x.at(column.last + 0.5)) - left);
    return html`<rect x="${place(left)}" y="${PLOT.top}" width="${place(width)}" height="${PLOT.bottom - PLOT.top}"><title>${tooltip(column, index)}</title></rect>`;
  })}</g>`;
}
