import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OutputPace } from "./output-pace.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("a burst has room, what is beyond it waits as long as it takes, and room comes back up to a burst", () => {
  const pace = new OutputPace({ bytesPerSecond: 1_000, burstBytes: 500 });
  expect(pace.note(500)).toBe(0);
  expect(pace.note(100)).toBe(100);
  vi.advanceTimersByTime(100);
  expect(pace.note(0)).toBe(0);
  vi.advanceTimersByTime(3_600_000);
  expect(pace.note(501)).toBe(1);
});

test("whoever waits as told reads no more than the rate and a burst, and not much less", () => {
  const chunks = fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(chunks, sizes => {
      const pace = new OutputPace({ bytesPerSecond: 1_000, burstBytes: 256 });
      let [readBytes, tookMs] = [0, 0];
      for (const bytes of sizes) {
        readBytes += bytes;
        const waitMs = Math.ceil(pace.note(bytes));
        vi.advanceTimersByTime(waitMs);
        tookMs += waitMs;
      }
      expect(readBytes).toBeLessThanOrEqual(256 + tookMs + 1e-6);
      // Waits are whole milliseconds here.
      expect(tookMs).toBeLessThanOrEqual(Math.max(0, readBytes - 256) + sizes.length);
    }),
  );
});
