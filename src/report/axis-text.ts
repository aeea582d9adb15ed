// What is written beside the ticks of an axis: as few digits as tell them apart, and no power of ten more than once.
import { decimals, scientific } from "./format.ts";
import type { Scale } from "./scale.ts";

/** What the numbers of an axis are: shares are written in percent. */
export type Measure = "number" | "share";

export interface AxisText {
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
  /** The unit with the power of ten that the ticks leave out. */
  readonly unit: string;
}

export function linearAxis({ at, ticks }: Scale, measure: Measure, unit: string): AxisText {
  const factor = measure === "share" ? 100 : 1;
  const largest = factor * Math.max(...ticks.map(Math.abs));
  const step = factor * (ticks.length > 1 ? ticks[1] - ticks[0] : 1);
  const isSmall = largest > 0 && largest < 1e-2;
  const isLarge = largest >= 1e5;
  const exponent = isSmall || isLarge ? Math.floor(Math.log10(largest) + 1e-9) : 0;
  const digits = digitsOf(step / 10 ** exponent);
  const sign = measure === "share" ? " %" : "";
  return {
    ticks: placed(at, ticks, tick => `${decimals((factor * tick) / 10 ** exponent, digits)}${sign}`),
    unit: exponent === 0 ? unit : `${unit}, in ${scientific(10 ** exponent, 0)}`,
  };
}

export function logAxis({ at, ticks }: Scale, unit: string): AxisText {
  const isPlain = ticks.every(tick => tick >= 0.0099 && tick <= 10_001);
  const text = (tick: number): string =>
    isPlain ? String(Number(tick.toPrecision(3))) : scientific(Number(tick.toPrecision(3)), 0);
  return { ticks: placed(at, ticks, text), unit: `${unit}, logarithmic` };
}

function placed(at: Scale["at"], ticks: readonly number[], text: (tick: number) => string) {
  return ticks.flatMap(tick => {
    const place = at(tick);
    return place === undefined ? [] : [{ at: place, text: text(tick) }];
  });
}

/** Digits after the point that a multiple of the step needs. */
function digitsOf(step: number): number {
  const digits = [0, 1, 2, 3, 4].find(count => {
    const scaled = step * 10 ** count;
    return Math.abs(scaled - Math.round(scaled)) < 1e-6 * scaled;
  });
  return digits ?? 4;
}
