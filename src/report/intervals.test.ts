import { describe, expect, it } from "vitest";
import { meanInterval, resolvedInterval } from "./intervals.ts";
import type { IterationData } from "./read-run.ts";

const iteration = (rewards: readonly number[]) =>
  ({
    iteration: 0,
    closed: { episodes: rewards.map(reward => ({ reward, resolved: reward === 1 })) },
  }) as unknown as IterationData;

describe("intervals of a curve", () => {
  it("are Wilson's for shares: 1 of 10 from 1.8 % to 40.4 % (Newcombe 1998, method 3)", () => {
    const { low, high } = resolvedInterval([iteration([1, 0, 0, 0, 0]), iteration([0, 0, 0, 0, 0])]) ?? {};
    expect([low, high]).toEqual([expect.closeTo(0.0179, 4), expect.closeTo(0.4042, 4)]);
  });

  it("are the mean ± 1.96 standard errors for numbers", () => {
    // Mean 2, s = 1, n = 3.
    const { low, high } = meanInterval(({ reward }) => reward)([iteration([1, 2, 3])]) ?? {};
    expect([low, high]).toEqual([expect.closeTo(2 - 1.1316, 4), expect.closeTo(2 + 1.1316, 4)]);
  });

  it("are none without episodes", () => {
    expect(resolvedInterval([{ iteration: 0 }])).toBeUndefined();
    expect(meanInterval(({ reward }) => reward)([iteration([1])])).toBeUndefined();
  });
});
