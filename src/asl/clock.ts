// Time of a runner. The real clock waits; the virtual one (virtual-clock.ts) jumps to the next timer as soon as nothing
// else can happen, so that a test of a six-hour timeout takes no time.

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls once, at `timeMs` or, when that is past, soon. */
  at(timeMs: number, callback: () => void): Timer;
  /** Says that work goes on which the clock cannot see (a process, a file): time must not jump. @returns ends it */
  hold(): () => void;
}

/** setTimeout takes a 32-bit count; longer waits are taken in steps. */
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

/** Holds the clock while the promise is under way. */
export async function holding<T>(clock: Clock, work: () => Promise<T>): Promise<T> {
  const release = clock.hold();
  try {
    return await work();
  } finally {
    release();
  }
}
