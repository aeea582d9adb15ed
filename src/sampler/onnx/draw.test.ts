import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { drawToken } from "./draw.ts";

const PROBABILITIES = [0.125, 0.5, 0.25, 0.125];
const LOG_PROBS = Float32Array.from(PROBABILITIES, Math.log);

function drawMany(sampling: object, count = 4_000) {
  const random = new RandomStream(deriveSeed("draw"));
  const settings = { temperature: 1, topP: 1, topK: 0, ...sampling };
  return Array.from({ length: count }, () => drawToken(LOG_PROBS, settings, random));
}

describe("a drawn token's log-prob is that of the distribution it was drawn from", () => {
  // By hand, from 1/8, 1/2, 1/4, 1/8.
  it.each<[string, object, Record<number, number>]>([
    ["no filter", {}, { 0: 1 / 8, 1: 1 / 2, 2: 1 / 4, 3: 1 / 8 }],
    ["top-k 2", { topK: 2 }, { 1: 2 / 3, 2: 1 / 3 }],
    ["top-k 3, the lower id of equals", { topK: 3 }, { 0: 1 / 7, 1: 4 / 7, 2: 2 / 7 }],
    ["top-p 0.6", { topP: 0.6 }, { 1: 2 / 3, 2: 1 / 3 }],
    ["top-p 0.4", { topP: 0.4 }, { 1: 1 }],
    ["top-k 3 and top-p 0.7", { topK: 3, topP: 0.7 }, { 1: 2 / 3, 2: 1 / 3 }],
    ["top-k 1", { topK: 1 }, { 1: 1 }],
    ["temperature 0", { temperature: 0 }, { 1: 1 }],
  ])("with %s", (_, sampling, expected) => {
    const drawn = drawMany(sampling);
    for (const { id, logProb } of drawn) expect(logProb).toBeCloseTo(Math.log(expected[id]), 6);
    for (const [id, probability] of Object.entries(expected)) {
      const share = drawn.filter(one => one.id === Number(id)).length / drawn.length;
      // Four standard deviations of a share of 4,000 draws are 0.032 at most.
      expect(Math.abs(share - probability)).toBeLessThan(0.032);
    }
  });

  it("sums to 1 over all tokens that can be drawn", () => {
    const logit = fc.float({ min: -8, max: 8, noNaN: true });
    const settings = fc.record({
      temperature: fc.constant(1),
      topP: fc.double({ min: 0.05, max: 1, noNaN: true }),
      topK: fc.nat(6),
    });
    fc.assert(
      fc.property(fc.array(logit, { minLength: 1, maxLength: 6 }), settings, (logits, sampling) => {
        const sum = logits.reduce((all, one) => all + Math.exp(one), 0);
        const logProbs = Float32Array.from(logits, one => one - Math.log(sum));
        const random = new RandomStream(deriveSeed("sum"));
        const seen = new Map<number, number>();
        for (let draw = 0; draw < 300; draw++) {
          const { id, logProb } = drawToken(logProbs, sampling, random);
          expect(seen.get(id) ?? logProb).toBe(logProb);
          seen.set(id, logProb);
        }
        const mass = [...seen.values()].reduce((all, logProb) => all + Math.exp(logProb), 0);
        // A token of less than 5 % may not have been drawn; none is drawn twice over.
        expect(mass).toBeLessThan(1 + 1e-5);
        expect(mass).toBeGreaterThan(0.7);
      }),
      { numRuns: 50 },
    );
  });
});
