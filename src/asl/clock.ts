// The time of a runner. Tests use a clock that jumps to the next timer as soon as nothing else can happen, so that a
// test of a six-hour timeout takes no time.
import { type Cancellation, Cancelled } from "./cancellation.ts";

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls once, at `timeMs` or, when that is past, soon. */
  at(timeMs: number, callback: () => void): Timer;
  /**
   * Tells a virtual clock that work goes on which it cannot see (a process, a file), so it must not jump.
   *
   * @returns ends the hold
   */
  hold(): () => void;
}

/** setTimeout takes a 32-bit count; the clock takes longer waits in steps. */
const LONGEST_STEP_MS = 0x7fffffff;

export const realClock: Clock = {
  now: () => Date.now(),
  at(timeMs, callback) {
    let timer: NodeJS.Timeout;
    const arm = () => {
      const leftMs = timeMs - Date.now();
      timer =
        leftMs > LONGEST_STEP_MS
          ? setTimeout(arm, LONGEST_STEP_MS)
          : setTimeout(callback, Math.max(0, leftMs));
    };
    arm();
    return { cancel: () => clearTimeout(timer) };
  },
  hold: () => () => {},
};

/** Holds the clock until the work settles. */
export async function holding<T>(clock: Clock, work: () => Promise<T>): Promise<T> {
  const release = clock.hold();
  try {
    return await work();
  } finally {
    release();
  }
}

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
