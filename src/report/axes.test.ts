import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linearAxis, logAxis } from "./axes.ts";
import { movingAverage, spreadLabels } from "./chart.ts";

const finite = fc.double({ min: -1e6, max: 1e6, noNaN: true });
const texts = (axis: ReturnType<typeof linearAxis>) => axis?.ticks.map(({ text }) => text);

describe("axes", () => {
  it("keep every value inside the plot, the ticks few and their texts apart", () => {
    fc.assert(
      fc.property(fc.array(finite, { minLength: 1, maxLength: 5 }), values => {
        const axis = linearAxis(values, [180, 20], "x");
        for (const value of values) expect(axis?.at(value)).toSatisfy(at => at >= 19.9 && at <= 180.1);
        expect(axis?.ticks.length).toBeGreaterThan(1);
        expect(axis?.ticks.length).toBeLessThan(9);
        expect(new Set(texts(axis)).size).toBe(axis?.ticks.length);
      }),
    );
  });

  it("put powers of ten at even distances, and nothing at 0", () => {
    const axis = logAxis([1e-4, 1e-1, 0], [90, 0], "x");
    const [a = 0, b = 0, c = 0] = [1e-4, 1e-3, 1e-2].map(value => axis?.at(value));
    expect(a - b).toBeCloseTo(b - c, 6);
    expect(axis?.at(0)).toBeUndefined();
    expect(texts(axis)).toEqual(["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"]);
  });

  it("hold logarithmic values of any size", () => {
    const positive = fc.integer({ min: -300, max: 300 }).map(exponent => 10 ** (exponent / 3));
    fc.assert(
      fc.property(positive, positive, (a, b) => {
        const axis = logAxis([a, b], [100, 0], "x");
        for (const value of [a, b]) expect(axis?.at(value)).toSatisfy(at => at > -0.1 && at < 100.1);
        expect(axis?.ticks.length).toBeGreaterThan(0);
        expect(axis?.ticks.length).toBeLessThan(12);
      }),
    );
  });

  it("are none without a value", () => {
    expect(linearAxis([], [0, 1], "x")).toBeUndefined();
    expect(logAxis([0, -1], [0, 1], "x")).toBeUndefined();
  });

  it.each([
    [[0, 1], "share of x", ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"], "share of x"],
    [[0, 0.001], "share", ["0.00 %", "0.02 %", "0.04 %", "0.06 %", "0.08 %", "0.10 %"], "share"],
    [[0, 0.0001], "x", ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"], "x, in 10⁻⁴"],
    [[-0.5, 0.5], "x", ["−0.6", "−0.4", "−0.2", "0.0", "0.2", "0.4", "0.6"], "x"],
    [[0, 400_000], "x", ["0", "1", "2", "3", "4"], "x, in 10⁵"],
    [[0, 5], "x", ["0", "1", "2", "3", "4", "5"], "x"],
  ] as const)("write the ticks of %j in %s", (values, unit, expected, written) => {
    const axis = linearAxis(values, [100, 0], unit);
    expect([texts(axis), axis?.unit]).toEqual([expected, written]);
  });
});

describe("a curve", () => {
  it("averages the values around each one, and keeps gaps", () => {
    expect(movingAverage([1, 2, undefined, 4, 6], 3)).toEqual([1.5, 1.5, undefined, 5, 5]);
    expect(movingAverage([3, 5], 1)).toEqual([3, 5]);
  });

  it("keeps its labels apart and inside", () => {
    expect(spreadLabels([100, 99, 101, 20], 12, { low: 10, high: 110 })).toEqual([98, 86, 110, 20]);
  });
});
