// What agents print without end must leave a process the time for its other work: a burst of it is read as fast as it
// comes, and beyond that all commands together at a bounded rate. Their pipes are full meanwhile, and they wait.

export interface OutputRate {
  readonly bytesPerSecond: number;
  readonly burstBytes: number;
}

export class OutputPace {
  readonly #rate: OutputRate;
  /** Negative when more was read than there was room for. */
  #roomBytes: number;
  #filledAt = performance.now();

  constructor(rate: OutputRate) {
    this.#rate = rate;
    this.#roomBytes = rate.burstBytes;
  }

  /** So much has been read. @returns ms until more may be; 0 when there is room */
  note(bytes: number): number {
    const { bytesPerSecond, burstBytes } = this.#rate;
    const now = performance.now();
    const room = this.#roomBytes + ((now - this.#filledAt) * bytesPerSecond) / 1000;
    this.#roomBytes = Math.min(burstBytes, room) - bytes;
    this.#filledAt = now;
    return this.#roomBytes >= 0 ? 0 : (-this.#roomBytes * 1000) / bytesPerSecond;
  }
}
