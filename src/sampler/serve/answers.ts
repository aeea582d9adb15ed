// Requests under way and answers just given, by request id. A driver that lost its connection and asks again is given
// the same answer, or joins the sampling that still runs; when nobody waits any more, the sampling is given up and its
// place in the batch is free.
import { InputError } from "../../failure/errors.ts";

interface Entry {
  /** Hash of the request, so that an id cannot fetch the answer to another one. */
  readonly content: string;
  readonly answer: Promise<string>;
  readonly giveUp: AbortController;
  waiting: number;
  sizeBytes: number | undefined;
}

export class Answers {
  readonly #entries = new Map<string, Entry>();
  readonly #maxKeptBytes: number;
  #keptBytes = 0;
  #running = 0;

  /** @param maxKeptBytes of answers given; the oldest go first */
  constructor(maxKeptBytes: number) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  /** Samplings under way. */
  get running(): number {
    return this.#running;
  }

  /**
   * @param sample makes the answer; called unless the request is under way or answered already
   * @returns the answer, and a function to be called once when its caller is gone
   * @throws InputError when another request has this id
   */
  ask(
    id: string,
    content: string,
    sample: (signal: AbortSignal) => Promise<string>,
  ): { readonly answer: Promise<string>; readonly leave: () => void } {
    const entry = this.#entries.get(id) ?? this.#begin(id, content, sample);
    if (entry.content !== content)
      throw new InputError({
        what: "two requests of one id",
        where: `rid ${JSON.stringify(id)}`,
        expected: "expected every request to have an id of its own",
      });
    entry.waiting++;
    const leave = (): void => {
      entry.waiting--;
      if (entry.waiting === 0 && entry.sizeBytes === undefined) this.#end(id, entry);
    };
    return { answer: entry.answer, leave };
  }

  /** Gives up a sampling, or all. */
  abort(id: string | undefined): void {
    for (const [other, entry] of this.#entries)
      if ((id === undefined || id === other) && entry.sizeBytes === undefined) this.#end(other, entry);
  }

  #begin(id: string, content: string, sample: (signal: AbortSignal) => Promise<string>): Entry {
    const giveUp = new AbortController();
    this.#running++;
    const answer = sample(giveUp.signal).finally(() => {
      this.#running--;
    });
    const entry: Entry = { content, answer, giveUp, waiting: 0, sizeBytes: undefined };
    this.#entries.set(id, entry);
    answer.then(
      text => this.#keep(entry, text),
      () => this.#forget(id, entry),
    );
    return entry;
  }

  #end(id: string, entry: Entry): void {
    this.#forget(id, entry);
    entry.giveUp.abort();
  }

  #keep(entry: Entry, text: string): void {
    entry.sizeBytes = text.length;
    this.#keptBytes += text.length;
    for (const [id, oldest] of this.#entries) {
      if (this.#keptBytes <= this.#maxKeptBytes) return;
      if (oldest.sizeBytes !== undefined) this.#forget(id, oldest);
    }
  }

  #forget(id: string, entry: Entry): void {
    if (this.#entries.get(id) !== entry) return;
    this.#entries.delete(id);
    this.#keptBytes -= entry.sizeBytes ?? 0;
  }
}
