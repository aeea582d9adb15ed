import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { DeadlineTimer } from "./deadline-timer.ts";

const DAY_MS = 24 * 3_600_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it.each([
  ["at once, though not within the call, for one that is past", -1, 0],
  ["after a time that one timer can wait", DAY_MS, DAY_MS],
  ["after more than two timers can wait", 60 * DAY_MS, 60 * DAY_MS],
])("calls %s", (_, inMs, afterMs) => {
  const called = vi.fn();
  new DeadlineTimer(Date.now() + inMs, called);
  expect(called).not.toHaveBeenCalled();
  if (afterMs > 0) vi.advanceTimersByTime(afterMs - 1);
  expect(called).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(called).toHaveBeenCalledOnce();
});

it("calls nobody when it was cancelled, also after its first wait", () => {
  const called = vi.fn();
  const timer = new DeadlineTimer(Date.now() + 60 * DAY_MS, called);
  vi.advanceTimersByTime(30 * DAY_MS);
  timer.cancel();
  vi.advanceTimersByTime(90 * DAY_MS);
  expect(called).not.toHaveBeenCalled();
});
