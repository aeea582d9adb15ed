// Polls a condition until it holds or times out.
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 5;

/** @returns whether it held within the limit */
export async function isDoneWithin(isDone: () => boolean, limitMs: number): Promise<boolean> {
  const until = performance.now() + limitMs;
  while (!isDone()) {
    if (performance.now() >= until) return false;
    await sleep(POLL_MS);
  }
  return true;
}
