// A timer of Node waits for 25 days at most: what is longer overflows, and fires at once.

/** Longest time that a timer of Node can wait. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Until a point in time, however far away; keeps no process alive. */
export class DeadlineTimer {
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param deadlineMs since 1970
   * @param onDeadline called once, never within this call
   */
  constructor(deadlineMs: number, onDeadline: () => void) {
    this.#wait(deadlineMs, onDeadline);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #wait(deadlineMs: number, onDeadline: () => void): void {
    const leftMs = deadlineMs - Date.now();
    this.#timer =
      leftMs > LONGEST_TIMER_MS
        ? setTimeout(() => this.#wait(deadlineMs, onDeadline), LONGEST_TIMER_MS)
        : setTimeout(onDeadline, Math.max(leftMs, 0));
    this.#timer.unref();
  }
}
