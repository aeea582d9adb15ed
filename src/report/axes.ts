// The axes of a drawing: places of values and the texts of ticks, on scales of d3. Tick texts have as few digits as tell
// them apart, and no power of ten stands there more than once.
import { scaleLinear, scaleLog } from "d3-scale";
import { decimals, scientific } from "./format.ts";

export interface Axis {
  /** Place of a value; undefined where it cannot be drawn (not above 0 on a logarithmic axis). */
  readonly at: (value: number) => number | undefined;
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
  /** The unit, with the power of ten that the ticks leave out. */
  readonly unit: string;
}

/** The places of both ends of an axis, e.g. bottom and top of a plot. */
type Places = readonly [from: number, to: number];

const TICKS = 4;
/** Below it the arithmetic of steps would lose its digits. */
const SMALLEST = 1e-200;

/** @param unit of the values; shares are written in percent @returns undefined when no value can be drawn */
export function linearAxis(values: readonly number[], places: Places, unit: string): Axis | undefined {
  if (values.length === 0) return undefined;
  const scale = scaleLinear()
    .domain(widen(Math.min(...values), Math.max(...values)))
    .nice(TICKS)
    .range(places);
  // An explained variance may be below 0, and the field writes it from 0 to 1.
  const isShare = unit.startsWith("share") && unit !== "share of variance";
  const largest = (isShare ? 100 : 1) * Math.max(...scale.domain().map(Math.abs));
  const exponent = largest < 1e-2 || largest >= 1e5 ? Math.floor(Math.log10(largest) + 1e-9) : 0;
  const factor = (isShare ? 100 : 1) / 10 ** exponent;
  const ticks = scale.ticks(TICKS);
  const digits = digitsOf(ticks.map(tick => factor * tick));
  const text = (tick: number) => `${decimals(factor * tick, digits)}${isShare ? " %" : ""}`;
  return {
    at: scale,
    ticks: ticks.map(tick => ({ at: scale(tick), text: text(tick) })),
    unit: exponent === 0 ? unit : `${unit}, in ${scientific(10 ** exponent, 0)}`,
  };
}

/** @returns undefined when no value is above 0 */
export function logAxis(values: readonly number[], places: Places, unit: string): Axis | undefined {
  const positive = values.filter(value => value > 0);
  if (positive.length === 0) return undefined;
  const scale = scaleLog()
    .domain([Math.min(...positive) / 1.3, Math.max(...positive) * 1.3])
    .range(places);
  const isLabelled = scale.tickFormat(TICKS);
  const all = scale.ticks(TICKS);
  const labelled = all.filter(tick => isLabelled(tick) !== "");
  const ticks = labelled.length > 0 ? labelled : all;
  const isPlain = ticks.every(tick => tick >= 0.0099 && tick <= 10_001);
  const text = (tick: number) => {
    const rounded = Number(tick.toPrecision(3));
    if (isPlain) return String(rounded);
    return scientific(rounded, Number(rounded.toExponential(0)) === rounded ? 0 : 1);
  };
  return {
    at: value => (value > 0 ? scale(value) : undefined),
    ticks: ticks.map(tick => ({ at: scale(tick), text: text(tick) })),
    unit: `${unit}, logarithmic`,
  };
}

/** A flat line still needs an axis; so does one whose changes are no more than the rounding of its numbers. */
function widen(low: number, high: number): [number, number] {
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (size < SMALLEST) return [0, 1];
  return high - low > 1e-9 * size ? [low, high] : [low - size / 2, high + size / 2];
}

/** Digits after the point that tell all ticks apart. */
function digitsOf(ticks: readonly number[]): number {
  const isEnough = (digits: number) =>
    ticks.every(tick => Math.abs(Number(tick.toFixed(digits)) - tick) <= 1e-6 * Math.abs(tick));
  return [0, 1, 2, 3].find(isEnough) ?? 4;
}
