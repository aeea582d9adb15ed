// What the shards of a phase share when one machine plays several of them: how many episodes are at work at once, and
// when enough have ended.
import type { EpisodeRecord } from "../run/records.ts";

/** Places for episodes at work, given in the order in which they are asked for. */
export class EpisodeSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs the work as soon as there is a place for it. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>(resolve => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Straight to the next one: nobody who comes now may pass it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** The straggler rule: when enough episodes have ended by themselves, its signal cancels the rest. */
export class Cutoff {
  readonly #enough: number;
  readonly #done = new Set<number>();
  readonly #abort = new AbortController();

  constructor(enough: number) {
    this.#enough = enough;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The same episode counts once, however often it is told. */
  count({ episode, failure, endReason }: EpisodeRecord): void {
    if (failure === undefined && endReason !== "cancelled") this.#done.add(episode);
    if (this.#done.size >= this.#enough) this.#abort.abort();
  }
}
