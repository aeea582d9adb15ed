// What is measured of a batch whose numbers are nearly equal: rounding must not look like a signal.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { explainedVariance, hasSpread } from "./statistics.ts";

describe("explained variance", () => {
  it("is undefined where returns differ by rounding alone", () => {
    // A reward of 0.7 by way of advantages and values far larger than it: their last bits are what differs.
    const returns = Float32Array.from({ length: 900 }, (_, t) =>
      Math.fround(Math.fround(0.7 - t / 7) + t / 7),
    );
    expect(new Set(returns).size).toBeGreaterThan(1);
    const values = returns.map((_, t) => t / 7);
    expect(explainedVariance(returns, values)).toBeUndefined();
    expect(explainedVariance(new Float32Array(5).fill(20), Float32Array.of(1, 2, 3, 4, 5))).toBeUndefined();
    expect(explainedVariance(new Float32Array(5), Float32Array.of(1, 2, 3, 4, 5))).toBeUndefined();
  });

  it("begins just above a variance of (1e-6·max|R|)²", () => {
    // Half at 1 − d, half at 1 + d: the variance is d².
    const around = (d: number) => Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? 1 - d : 1 + d));
    expect(hasSpread(around(0.99e-6))).toBe(false);
    expect(hasSpread(around(1.01e-6))).toBe(true);
    expect(hasSpread(around(0.99e-6).map(x => x * 1e9))).toBe(false);
    expect(hasSpread(around(1.01e-6).map(x => x * 1e-9))).toBe(true);
  });

  it("is 1 for the returns themselves, 0 for a constant, and what the definition gives by hand", () => {
    const returns = Float32Array.of(0, 1, 2, 5);
    expect(explainedVariance(returns, returns)).toBe(1);
    expect(explainedVariance(returns, new Float32Array(4).fill(3))).toBeCloseTo(0, 12);
    // Var R = 3.5; R − V = 0, 1, 1, 2 with variance 0.5.
    expect(explainedVariance(returns, Float32Array.of(0, 0, 1, 3))).toBeCloseTo(1 - 0.5 / 3.5, 12);
  });

  it("is never more than 1, and never a number without a spread", () => {
    const one = fc.float({ noNaN: true, min: -1000, max: 1000 });
    fc.assert(
      fc.property(fc.array(fc.tuple(one, one), { minLength: 1 }), pairs => {
        const returns = Float32Array.from(pairs, ([value]) => value);
        const values = Float32Array.from(pairs, ([, value]) => value);
        const explained = explainedVariance(returns, values);
        expect(explained === undefined).toBe(!hasSpread(returns, values));
        if (explained !== undefined) expect(explained <= 1 && Number.isFinite(explained)).toBe(true);
      }),
    );
  });
});
