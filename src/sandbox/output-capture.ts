// Keeps the first and the last bytes of an output stream in bounded memory, however much it prints.
import type { CapturedOutput } from "./sandbox.ts";

export class OutputCapture {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = Buffer.alloc(0);
  #headLength = 0;
  /** A ring, made when the head is full: most commands print little. */
  #tail: Buffer | undefined;
  #tailTotal = 0;
  #isDropped = false;

  /** @param limitBytes kept bytes: the first half of them from the start of the stream, the rest from its end */
  constructor(limitBytes: number) {
    this.#headLimit = Math.ceil(limitBytes / 2);
    this.#tailLimit = Math.floor(limitBytes / 2);
  }

  push(chunk: Uint8Array): void {
    const room = this.#headLimit - this.#headLength;
    if (room > 0) this.#appendToHead(chunk.subarray(0, room));
    if (chunk.length > room) this.#appendToTail(chunk.subarray(Math.max(room, 0)));
  }

  get keptBytes(): number {
    return this.#isDropped ? 0 : this.#headLength + Math.min(this.#tailTotal, this.#tailLimit);
  }

  /** Lets go of what was kept, which counts as left out from now on. For a stream that has ended. */
  drop(): void {
    this.#isDropped = true;
    this.#head = Buffer.alloc(0);
    this.#tail = undefined;
  }

  /** The bytes kept so far; all in `head` when nothing had to be left out. */
  read(): CapturedOutput {
    const none = new Uint8Array(0);
    if (this.#isDropped) return { head: none, tail: none, omittedBytes: this.#headLength + this.#tailTotal };
    const head = this.#head.subarray(0, this.#headLength);
    const kept = Math.min(this.#tailTotal, this.#tailLimit);
    const omittedBytes = this.#tailTotal - kept;
    if (this.#tail === undefined || kept === 0)
      return { head: new Uint8Array(head), tail: new Uint8Array(0), omittedBytes };
    const oldest = omittedBytes % this.#tailLimit;
    const tail = Buffer.concat([this.#tail.subarray(oldest, kept), this.#tail.subarray(0, oldest)]);
    return omittedBytes === 0
      ? { head: new Uint8Array(Buffer.concat([head, tail])), tail: new Uint8Array(0), omittedBytes }
      : { head: new Uint8Array(head), tail: new Uint8Array(tail), omittedBytes };
  }

  #appendToHead(bytes: Uint8Array): void {
    const needed = this.#headLength + bytes.length;
    if (needed > this.#head.length) {
      // Doubling, because a stream of single bytes must not cost a buffer each.
      const grown = Buffer.alloc(Math.min(Math.max(needed, 2 * this.#head.length, 1024), this.#headLimit));
      this.#head.copy(grown, 0, 0, this.#headLength);
      this.#head = grown;
    }
    this.#head.set(bytes, this.#headLength);
    this.#headLength = needed;
  }

  #appendToTail(bytes: Uint8Array): void {
    const limit = this.#tailLimit;
    this.#tailTotal += bytes.length;
    if (limit === 0) return;
    this.#tail ??= Buffer.alloc(limit);
    const last = bytes.subarray(Math.max(0, bytes.length - limit));
    const start = (this.#tailTotal - last.length) % limit;
    const untilWrap = Math.min(last.length, limit - start);
    this.#tail.set(last.subarray(0, untilWrap), start);
    this.#tail.set(last.subarray(untilWrap), 0);
  }
}
