// Paces what would overrun somebody else: so many at once, then so many per second, first come first served.
import { setTimeout as sleep } from "node:timers/promises";

export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt = performance.now();
  #last: Promise<void> = Promise.resolve();

  constructor({ perSecond, burst }: { readonly perSecond: number; readonly burst: number }) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Resolves when it is one's turn. */
  take(): Promise<void> {
    this.#last = this.#last.then(() => this.#take());
    return this.#last;
  }

  async #take(): Promise<void> {
    this.#fill();
    // A timer may come a little early.
    while (this.#tokens < 1) {
      await sleep(Math.ceil(((1 - this.#tokens) * 1000) / this.#perSecond));
      this.#fill();
    }
    this.#tokens -= 1;
  }

  #fill(): void {
    const now = performance.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) * this.#perSecond) / 1000);
    this.#filledAt = now;
  }
}
