import { describe, expect, test } from "vitest";
import {
  effectiveSize,
  meanShare,
  pairedDifference,
  studentQuantile,
  type TaskShare,
  wilson,
} from "./shares.ts";

/** Tasks with one episode each: `yes` of them resolved. */
const singles = (...shares: readonly number[]): TaskShare[] => shares.map(share => ({ share, episodes: 1 }));
/** Pairs of a 2 × 2 table: both, only before, only after, neither. */
function table(both: number, before: number, after: number, neither: number) {
  const rows = [
    [both, 1, 1],
    [before, 1, 0],
    [after, 0, 1],
    [neither, 0, 0],
  ] as const;
  const of = (which: 1 | 2): TaskShare[] =>
    singles(...rows.flatMap(row => Array.from({ length: row[0] }, () => row[which])));
  return pairedDifference(of(1), of(2));
}

// Newcombe, Statistics in Medicine 17 (1998) 857–872, table I, method 3.
test.each([
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
])("Wilson's interval of %i of %i", (successes, size, low, high) => {
  const interval = wilson(successes / size, size);
  expect(interval.low).toBeCloseTo(low, 4);
  expect(interval.high).toBeCloseTo(high, 4);
});

// Student's t, 97.5 %: the table of Fisher and Yates.
test.each([
  [1, 12.706],
  [2, 4.303],
  [3, 3.182],
  [5, 2.571],
  [10, 2.228],
  [30, 2.042],
  [120, 1.98],
])("Student's quantile for %i degrees", (degrees, value) => {
  expect(Math.abs(studentQuantile(degrees) / value - 1)).toBeLessThan(0.005);
});

describe("a paired difference", () => {
  test.each([
    // Altman, Machin, Bryant and Gardner, Statistics with Confidence (2000), table 6.2: 0.122 (0.011 to 0.226).
    ["of Altman's table 6.2", [14, 0, 5, 22], 0.122, 0.011, 0.226],
    // Bentur et al. 2009, in Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014) 2850–2875, table VI.
    ["of Bentur's table", [1, 7, 1, 12], -0.286, -0.507, -0.026],
  ] as const)("%s is Newcombe's", (_, [both, before, after, neither], mean, low, high) => {
    const difference = table(both, before, after, neither);
    expect(difference.mean).toBeCloseTo(mean, 3);
    expect(difference.low).toBeCloseTo(low, 3);
    expect(difference.high).toBeCloseTo(high, 3);
  });

  test("of 4 episodes of 144 against none is no finding: each on a task of its own, the sign test gives p = 0.125", () => {
    const tasks = (resolved: number): TaskShare[] =>
      Array.from({ length: 48 }, (_, task) => ({ share: task < resolved ? 1 / 3 : 0, episodes: 3 }));
    const { mean, low, high } = pairedDifference(tasks(4), tasks(0));
    expect(mean).toBeCloseTo(-4 / 144, 10);
    expect(low).toBeLessThan(-0.05);
    expect(high).toBeGreaterThan(0);
  });

  test("of nothing and nothing reaches as far as that many tasks allow, both ways", () => {
    const { mean, low, high } = table(0, 0, 0, 48);
    expect(mean).toBe(0);
    // 3.84 / (48 + 3.84); the rule of three says 3 / 48 = 6.3 % for one side of 95 %
    expect(high).toBeCloseTo(0.0741, 4);
    expect(low).toBe(-high);
  });

  test("of many tasks that changed one way is a finding", () => {
    expect(table(20, 0, 12, 16).low).toBeGreaterThan(0);
  });
});

describe("episodes of one task", () => {
  test("that always agree count once, and those that differ as by chance count each", () => {
    const agreeing = Array.from({ length: 20 }, (_, task) => ({ share: task % 2, episodes: 10 }));
    expect(effectiveSize(agreeing)).toBe(20);
    const mixed = Array.from({ length: 20 }, () => ({ share: 0.5, episodes: 10 }));
    expect(effectiveSize(mixed)).toBe(200);
  });

  test("of few tasks tell little about others: 200 of two tasks are worth fewer than five", () => {
    expect(
      effectiveSize([
        { share: 0.5, episodes: 100 },
        { share: 0.6, episodes: 100 },
      ]),
    ).toBeLessThan(5);
  });

  test("of which none was resolved leave room for what that many tasks allow", () => {
    const none = Array.from({ length: 48 }, () => ({ share: 0, episodes: 3 }));
    expect(meanShare(none)).toMatchObject({ mean: 0, low: 0 });
    expect(meanShare(none).high).toBeCloseTo(0.0741, 4);
  });
});
