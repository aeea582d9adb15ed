import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limitTokens } from "./limit-tokens.ts";

describe("token limit", () => {
  it("keeps short observations whole and never exceeds the limit", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(500), { maxLength: 60 }),
        fc.integer({ min: 1, max: 40 }),
        (tokens, limit) => {
          const kept = limitTokens(tokens, limit, [900, 901]);
          expect(kept.length).toBe(Math.min(tokens.length, limit));
          if (tokens.length <= limit) expect(kept).toEqual(tokens);
        },
      ),
    );
  });

  it("cuts the middle, with a marker, and keeps both ends", () => {
    const tokens = Array.from({ length: 30 }, (_, i) => i);
    expect(limitTokens(tokens, 14, [900, 901])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 900, 901, 26, 27, 28, 29]);
  });
});
