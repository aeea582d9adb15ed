// The change of a share between two independent samples, with an interval that holds for few episodes too.
import type { Interval } from "./bootstrap.ts";

export interface CountedShare {
  /** How many of `size` succeeded. */
  readonly successes: number;
  /** Above 0. */
  readonly size: number;
}

/** The normal quantile of a central 95 %. */
const Z = 1.959964;

/**
 * `after` minus `before` with its 95 % interval by Newcombe's hybrid score method (Statistics in Medicine 17, 1998,
 * method 10). The normal approximation would be no wider than a point where all or none succeeded.
 */
export function shareDifference(before: CountedShare, after: CountedShare): Interval {
  const [first, last] = [wilson(before), wilson(after)];
  const mean = last.mean - first.mean;
  return {
    mean,
    low: mean - Math.hypot(last.mean - last.low, first.high - first.mean),
    high: mean + Math.hypot(last.high - last.mean, first.mean - first.low),
  };
}

/** Wilson's score interval of one share. */
export function wilson({ successes, size }: CountedShare): Interval {
  const mean = successes / size;
  const center = mean + Z ** 2 / (2 * size);
  const halfWidth = Z * Math.sqrt((mean * (1 - mean)) / size + (Z / (2 * size)) ** 2);
  const scale = 1 + Z ** 2 / size;
  return { mean, low: (center - halfWidth) / scale, high: (center + halfWidth) / scale };
}
