// Waits for something that nothing tells of.
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 5;

/** @returns whether it came true within that time */
export async function isDoneWithin(isDone: () => boolean, limitMs: number): Promise<boolean> {
  const until = performance.now() + limitMs;
  while (!isDone()) {
    if (performance.now() >= until) return false;
    await sleep(POLL_MS);
  }
  return true;
}
