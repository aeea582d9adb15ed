import { expect, test } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

test("as many as the burst go at once, the others at the rate, in order", async () => {
  const bucket = new TokenBucket({ perSecond: 50, burst: 3 });
  const startedAt = performance.now();
  const times: number[] = [];
  const order: number[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      await bucket.take();
      times.push(performance.now() - startedAt);
      order.push(index);
    }),
  );
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(times[2]).toBeLessThan(20);
  expect(times[7]).toBeGreaterThanOrEqual(99); // five of them, 20 ms each
});
