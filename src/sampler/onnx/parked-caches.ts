// Caches of sequences that wait for their next turn, found again by the token ids that they were computed from.
import { bytesOf, PrefixHashes } from "../../trajectory/prefix-hashes.ts";
import { cacheBytes, EMPTY_CACHE, type ParkedCache } from "./kv-cache.ts";

/** What one turn of a stream leaves for the next. */
export interface Parked {
  readonly cache: ParkedCache;
  /** Hashes of the stream's blocks, which receipts cover. */
  readonly prefixes: PrefixHashes;
}

interface Entry extends Parked {
  readonly tokens: Int32Array;
}

/** This many ids at the end of a stream, and its length, narrow the search; the whole stream is compared then. */
const KEY_TOKENS = 8;

export class ParkedCaches {
  readonly #limitBytes: number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry[]>();
  #sizeBytes = 0;

  /** @param limitBytes above this the oldest caches are dropped; their sequences are prefilled again */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** @param tokens the stream; the cache has a row for each of them but the last */
  park(tokens: Int32Array, { cache, prefixes }: Parked): void {
    const key = keyOf(tokens);
    this.#entries.set(key, [...(this.#entries.get(key) ?? []), { tokens, cache, prefixes }]);
    this.#sizeBytes += cacheBytes(cache);
    for (const [oldest, entries] of this.#entries) {
      if (this.#sizeBytes <= this.#limitBytes) break;
      this.#sizeBytes -= entries.reduce((sum, entry) => sum + cacheBytes(entry.cache), 0);
      this.#entries.delete(oldest);
    }
  }

  /** Takes out what was parked for exactly this stream; it is empty when there is nothing. */
  take(tokens: Int32Array): Parked {
    const key = keyOf(tokens);
    const entries = this.#entries.get(key) ?? [];
    const at = entries.findIndex(entry => bytesOf(entry.tokens).equals(bytesOf(tokens)));
    if (at === -1) return { cache: EMPTY_CACHE, prefixes: new PrefixHashes() };
    const [parked] = entries.splice(at, 1);
    if (entries.length === 0) this.#entries.delete(key);
    this.#sizeBytes -= cacheBytes(parked.cache);
    return parked;
  }

  clear(): void {
    this.#entries.clear();
    this.#sizeBytes = 0;
  }
}

function keyOf(tokens: Int32Array): string {
  return `${tokens.length}:${tokens.subarray(-KEY_TOKENS).join(",")}`;
}
