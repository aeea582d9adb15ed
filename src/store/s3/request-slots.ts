// How many requests are under way at once. The SDK's time-outs begin when a request is made, also while it only waits
// for a socket; so a request is made when there is a socket for it, and the rest wait here.

export class RequestSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs the action as soon as a slot is free; first come, first served. */
  async run<Result>(action: () => Promise<Result>): Promise<Result> {
    if (this.#free === 0) await new Promise<void>(resolve => this.#waiting.push(resolve));
    else this.#free--;
    try {
      return await action();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
