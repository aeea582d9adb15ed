// The change of a share between two independent samples, with an interval that holds for few episodes too.
import type { Interval } from "./bootstrap.ts";
import { wilson } from "./shares.ts";

export interface CountedShare {
  /** How many of `size` succeeded. */
  readonly successes: number;
  /** Above 0. */
  readonly size: number;
}

/**
 * `after` minus `before` with its 95 % interval by Newcombe's hybrid score method (Statistics in Medicine 17, 1998,
 * method 10). The normal approximation would be no wider than a point where all or none succeeded.
 */
export function shareDifference(before: CountedShare, after: CountedShare): Interval {
  const [first, last] = [before, after].map(({ successes, size }) => wilson(successes / size, size));
  const mean = last.mean - first.mean;
  return {
    mean,
    low: mean - Math.hypot(last.mean - last.low, first.high - first.mean),
    high: mean + Math.hypot(last.high - last.mean, first.mean - first.low),
  };
}
