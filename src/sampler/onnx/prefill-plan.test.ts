import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { choosePrefill, DEFAULT_SCORE_BYTES, pieceOf } from "./prefill-plan.ts";

const waiting = (freshCount: number, rowCount: number) => ({
  freshCount,
  cache: { rowCount, keys: [], values: [] },
});
const arbitraryRoom = fc.record({
  headCount: fc.constantFrom(1, 4, 32),
  scoreBytes: fc.constantFrom(2 ** 14, DEFAULT_SCORE_BYTES),
});

describe("a prefill", () => {
  it("feeds a prompt of 14,000 tokens in pieces whose scores need 64 MiB each, where all at once need 3.1 GB", () => {
    const room = { headCount: 4, scoreBytes: DEFAULT_SCORE_BYTES };
    expect(4 * 4 * 14_000 ** 2).toBe(3.136e9);
    const pieces: number[] = [];
    for (let rows = 0; rows < 14_000; rows += pieces[pieces.length - 1])
      pieces.push(pieceOf(waiting(14_000 - rows, rows), room));
    // By hand: T · (S + T) ≤ 64 · 2^20 / 16 = 4,194,304, so 2,048 at S = 0 and 1,265 at S = 2,048.
    expect(pieces.slice(0, 2)).toEqual([2048, 1265]);
    expect(pieces.length).toBeLessThan(30);
  });

  it("never needs more room than there is, takes the oldest prompt, and feeds something of each in its group", () => {
    const prompt = fc.tuple(fc.integer({ min: 1, max: 20_000 }), fc.nat(20_000));
    fc.assert(
      fc.property(fc.array(prompt, { minLength: 1, maxLength: 20 }), arbitraryRoom, (prompts, room) => {
        const all = prompts.map(([fresh, rows]) => waiting(fresh, rows));
        const group = choosePrefill(all, room);
        expect(group[0]).toBe(all[0]);
        const pieces = group.map(one => pieceOf(one, room));
        expect(Math.min(...pieces)).toBeGreaterThan(0);
        const longest = Math.max(...pieces);
        const rows = Math.max(...group.map(({ cache }) => cache.rowCount));
        const bytes = 4 * group.length * room.headCount * longest * (rows + longest);
        // One token must be fed however little room there is.
        if (group.length > 1 || longest > 1) expect(bytes).toBeLessThanOrEqual(room.scoreBytes);
        expect(group.length * longest).toBeLessThanOrEqual(4096);
      }),
    );
  });

  it("puts prompts of like length together, however old the others are", () => {
    const room = { headCount: 1, scoreBytes: DEFAULT_SCORE_BYTES };
    const all = [100, 2_000, 101, 5, 99].map(fresh => waiting(fresh, 0));
    expect(choosePrefill(all, room).map(({ freshCount }) => freshCount)).toEqual([100, 101, 99]);
  });
});
