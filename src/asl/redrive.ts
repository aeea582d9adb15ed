// Which executions may be redriven.
import type { Execution } from "./execution.ts";

/** An execution can be redriven for 14 days after its end. */
const REDRIVE_DAYS_MS = 14 * 24 * 3_600_000;

/** @returns why it cannot be redriven, undefined where it can */
export function whyNotRedrivable({ status, stopMs = 0, history, world }: Execution): string | undefined {
  if (status === "RUNNING" || status === "SUCCEEDED")
    return `expected one that failed, timed out or was stopped, it is ${status}`;
  if (world.clock.now() - stopMs > REDRIVE_DAYS_MS) return "its end is more than 14 days ago";
  return history.events.length + 1 >= world.limits.historyEvents ? "its history is full" : undefined;
}
