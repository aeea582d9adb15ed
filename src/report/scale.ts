// From values to places in a drawing, and the numbers written beside an axis.

export interface Scale {
  /** Place of a value; undefined where it cannot be drawn (not above 0 on a logarithmic axis). */
  readonly at: (value: number) => number | undefined;
  readonly ticks: readonly number[];
}

export interface Span {
  readonly low: number;
  readonly high: number;
}

/**
 * @param from place of the low end, e.g. the bottom of a plot
 * @param to   place of the high end
 */
export function linearScale(values: Span, from: number, to: number, tickCount: number): Scale {
  const { low, high } = widen(values);
  const step = niceStep((high - low) / tickCount);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => cleanMultiple(first + index, step));
  const [bottom, top] = [first * step, last * step];
  return { at: value => from + ((value - bottom) / (top - bottom)) * (to - from), ticks };
}

/** Decades; with fewer than two of them also 2 and 5 times a power of ten. */
export function logScale({ low, high }: Span, from: number, to: number): Scale {
  const [bottom, top] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
  const decades = Math.max(1, top - bottom);
  const mantissas = decades <= 2 ? [1, 2, 5] : [1];
  const every = Math.ceil(decades / 5);
  const candidates = Array.from({ length: decades + 1 }, (_, index) => index)
    .filter(index => index % every === 0)
    .flatMap(index => mantissas.map(mantissa => mantissa * 10 ** (bottom + index)));
  const below = candidates.filter(tick => tick <= low * (1 + 1e-9));
  const above = candidates.filter(tick => tick >= high * (1 - 1e-9));
  const [start, end] = [below.at(-1) ?? candidates[0], above[0] ?? 10 ** (bottom + decades)];
  const span = Math.log10(end / start) || 1;
  return {
    at: value => (value > 0 ? from + (Math.log10(value / start) / span) * (to - from) : undefined),
    ticks: candidates.filter(tick => tick >= start * (1 - 1e-9) && tick <= end * (1 + 1e-9)),
  };
}

/** Whole numbers only, the last one included; for iterations. */
export function wholeTicks({ low, high }: Span, tickCount: number): number[] {
  const step = Math.max(1, niceStep((high - low) / tickCount));
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks.length === 0 ? [low] : ticks;
}

/** @returns undefined when there is no value */
export function spanOf(values: Iterable<number>): Span | undefined {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return low > high ? undefined : { low, high };
}

/**
 * Mean of the values around each one; at the ends of those that are there.
 *
 * @param window odd number of neighbours, itself included
 */
export function movingAverage(
  values: readonly (number | undefined)[],
  window: number,
): (number | undefined)[] {
  const half = (window - 1) / 2;
  return values.map((own, index) => {
    if (own === undefined) return undefined;
    const near = values
      .slice(Math.max(0, index - half), index + half + 1)
      .filter(value => value !== undefined);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

/** Places for labels beside a drawing: near where they belong, none over another, all within the span. */
export function spreadLabels(wanted: readonly number[], gap: number, { low, high }: Span): number[] {
  const order = wanted.map((place, index) => ({ place, index })).sort((a, b) => a.place - b.place);
  const placed = new Array<number>(wanted.length);
  let next = low;
  for (const { place, index } of order) {
    placed[index] = Math.max(place, next);
    next = placed[index] + gap;
  }
  let limit = high;
  for (const { index } of order.reverse()) {
    placed[index] = Math.min(placed[index], limit);
    limit = placed[index] - gap;
  }
  return placed;
}

/** A flat line still needs an axis; so does one whose changes are no more than the rounding of its numbers. */
function widen({ low, high }: Span): Span {
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (size < SMALLEST) return { low: 0, high: 1 };
  return high - low > 1e-9 * size ? { low, high } : { low: low - size / 2, high: high + size / 2 };
}

/** Below it the arithmetic of steps would lose its digits. */
const SMALLEST = 1e-200;

/** The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below. */
function niceStep(rough: number): number {
  if (!(rough > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const mantissa = [1, 2, 2.5, 5, 10].find(step => step * power >= rough * (1 - 1e-9)) ?? 10;
  return mantissa * power;
}

/** 3 · 0.1 as 0.3, not 0.30000000000000004. */
function cleanMultiple(factor: number, step: number): number {
  return Number((factor * step).toPrecision(12));
}
