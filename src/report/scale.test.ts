import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linearAxis, logAxis } from "./axis-text.ts";
import { linearScale, logScale, movingAverage, spanOf, spreadLabels, wholeTicks } from "./scale.ts";

const finite = fc.double({ min: -1e6, max: 1e6, noNaN: true });

describe("scales", () => {
  it("keep every value inside the plot and the ticks few", () => {
    fc.assert(
      fc.property(finite, finite, (a, b) => {
        const span = { low: Math.min(a, b), high: Math.max(a, b) };
        const { at, ticks } = linearScale(span, 180, 20, 4);
        for (const value of [a, b]) expect(at(value)).toSatisfy(place => place >= 19.9 && place <= 180.1);
        expect(ticks.length).toBeGreaterThan(1);
        expect(ticks.length).toBeLessThan(9);
      }),
    );
  });

  it("put powers of ten at even distances, and nothing at 0", () => {
    const { at, ticks } = logScale({ low: 1e-4, high: 1e-1 }, 90, 0);
    expect(ticks).toEqual([1e-4, 1e-3, 1e-2, 1e-1].map(tick => expect.closeTo(tick, 12)));
    expect([at(1e-4), at(1e-3), at(1e-1), at(0)]).toEqual([
      expect.closeTo(90, 6),
      expect.closeTo(60, 6),
      expect.closeTo(0, 6),
      undefined,
    ]);
  });

  it("hold logarithmic values of any size", () => {
    const positive = fc.integer({ min: -300, max: 300 }).map(exponent => 10 ** (exponent / 3));
    fc.assert(
      fc.property(positive, positive, (a, b) => {
        const { at, ticks } = logScale({ low: Math.min(a, b), high: Math.max(a, b) }, 100, 0);
        for (const value of [a, b]) expect(at(value)).toSatisfy(place => place > -0.1 && place < 100.1);
        expect(ticks.length).toBeLessThan(10);
      }),
    );
  });

  it("number iterations by whole numbers", () => {
    expect(wholeTicks({ low: 0, high: 3 }, 6)).toEqual([0, 1, 2, 3]);
    expect(wholeTicks({ low: 0, high: 119 }, 6)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(wholeTicks({ low: 7, high: 7 }, 6)).toEqual([7]);
  });

  it("say that nothing has no span", () => {
    expect(spanOf([])).toBeUndefined();
  });

  it("average what is there around each value, and keep gaps", () => {
    expect(movingAverage([1, 2, undefined, 4, 6], 3)).toEqual([1.5, 1.5, undefined, 5, 5]);
    expect(movingAverage([3, 5], 1)).toEqual([3, 5]);
  });

  it("keep labels apart and inside", () => {
    const places = spreadLabels([100, 99, 101, 20], 12, { low: 10, high: 110 });
    expect(places).toEqual([98, 86, 110, 20]);
  });
});

describe("axis texts", () => {
  it.each([
    [[0, 0.25, 0.5, 0.75, 1], "share", ["0 %", "25 %", "50 %", "75 %", "100 %"], "x"],
    [[0, 0.0005, 0.001], "share", ["0.00 %", "0.05 %", "0.10 %"], "x"],
    [[0, 0.00005, 0.0001], "number", ["0.0", "0.5", "1.0"], "x, in 10⁻⁴"],
    [[-0.5, 0, 0.5], "number", ["−0.5", "0.0", "0.5"], "x"],
    [[0, 200_000, 400_000], "number", ["0", "2", "4"], "x, in 10⁵"],
    [[0, 2.5, 5], "number", ["0.0", "2.5", "5.0"], "x"],
  ] as const)("of %j as %s", (ticks, measure, texts, unit) => {
    const axis = linearAxis({ at: value => value, ticks }, measure, "x");
    expect([axis.ticks.map(tick => tick.text), axis.unit]).toEqual([texts, unit]);
  });

  it("write powers of ten where plain numbers would be long", () => {
    const texts = (ticks: readonly number[]) =>
      logAxis({ at: value => value, ticks }, "x").ticks.map(tick => tick.text);
    expect(texts([1e-4, 2e-4, 1e-2])).toEqual(["10⁻⁴", "2×10⁻⁴", "10⁻²"]);
    expect(texts([0.01, 0.1, 1, 10])).toEqual(["0.01", "0.1", "1", "10"]);
  });
});
