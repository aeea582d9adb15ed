// Small drawings in cells of a table.

import { type Interval, place } from "./chart.ts";
import { type Html, html } from "./html.ts";

const WIDTH = 120;
const HEIGHT = 14;
const MIDDLE = HEIGHT / 2;

/** Draws the change of a share between 0 and 1: a hollow dot before, a full one after, a line between. */
export function shareBar(before: number | undefined, after: number | undefined): Html {
  const at = (share: number): number => place(4 + share * (WIDTH - 8));
  return html`<svg class="mini" viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true"><path class="track" d="M4 ${MIDDLE}H${WIDTH - 4}"/>${
    before !== undefined &&
    after !== undefined &&
    html`<path class="step" d="M${at(before)} ${MIDDLE}H${at(after)}"/>`
  }${before !== undefined && html`<circle class="before" cx="${at(before)}" cy="${MIDDLE}" r="3"/>`}${
    after !== undefined && html`<circle class="after" cx="${at(after)}" cy="${MIDDLE}" r="3.5"/>`
  }</svg>`;
}

export interface Bounds extends Interval {
  readonly mean: number;
}

const WIDE = 220;

/** Draws an interval around its mean and a line at 0. @param span values of the edges, the same in a column */
export function intervalBar({ mean, low, high }: Bounds, span: Interval): Html {
  const scale = (WIDE - 10) / (span.high - span.low || 1);
  const at = (value: number): number => place(5 + (value - span.low) * scale);
  const tone = low > 0 ? "good" : high < 0 ? "bad" : "";
  return html`<svg class="mini wide" viewBox="0 0 ${WIDE} ${HEIGHT}" aria-hidden="true"><path class="zero" d="M${at(0)} 0V${HEIGHT}"/><path class="interval ${tone}" d="M${at(low)} ${MIDDLE}H${at(high)}"/><circle class="dot ${tone}" cx="${at(mean)}" cy="${MIDDLE}" r="3.5"/></svg>`;
}
