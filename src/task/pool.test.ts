import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { START, takeTasks } from "./pool.ts";

const poolOf = (count: number) => ({
  folder: "/pool",
  names: Array.from({ length: count }, (_, i) => `t${i}`),
});

describe("task pool", () => {
  it("gives every task once per epoch, whatever the sizes of the portions", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 1, max: 15 }), { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        (size, portions, shuffle) => {
          const pool = poolOf(size);
          let cursor = START;
          const taken: string[] = [];
          for (const count of portions) {
            const part = takeTasks(pool, cursor, { count, seed: 3, shuffle });
            expect(part.names).toHaveLength(count);
            taken.push(...part.names);
            cursor = part.next;
          }
          for (let at = 0; at + size <= taken.length; at += size)
            expect(new Set(taken.slice(at, at + size)).size).toBe(size);
          expect(cursor.epoch * size + cursor.position).toBe(taken.length);
        },
      ),
    );
  });

  it("goes on where it stopped (prime-rl#3164: 10 tasks, batch 4, resumed after one)", () => {
    const options = { count: 4, seed: 0, shuffle: false };
    const first = takeTasks(poolOf(10), START, options);
    expect(takeTasks(poolOf(10), first.next, options).names).toEqual(["t4", "t5", "t6", "t7"]);
  });

  it("shuffles each epoch differently, and the same way for the same seed", () => {
    const pool = poolOf(30);
    const epoch = (number: number, seed: number) =>
      takeTasks(pool, { epoch: number, position: 0 }, { count: 30, seed, shuffle: true }).names;
    expect(epoch(0, 1)).not.toEqual(epoch(1, 1));
    expect(epoch(0, 1)).not.toEqual(epoch(0, 2));
    expect(epoch(1, 1)).toEqual(epoch(1, 1));
  });
});
