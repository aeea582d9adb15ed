// Waiting on a clock, and no longer than the work that waits.
import { type Cancellation, Cancelled } from "./cancellation.ts";
import type { Clock } from "./clock.ts";

/** @throws Cancelled when the work is cancelled before the time comes */
export function sleepUntil(clock: Clock, timeMs: number, cancellation: Cancellation): Promise<void> {
  if (cancellation.isCancelled) return Promise.reject(new Cancelled("cancelled"));
  return new Promise((resolve, reject) => {
    const timer = clock.at(timeMs, () => {
      leave();
      resolve();
    });
    const leave = cancellation.onCancel(() => {
      timer.cancel();
      reject(new Cancelled("cancelled"));
    });
  });
}
