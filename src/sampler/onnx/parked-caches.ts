// Caches of sequences that wait for their next turn, found again by the token ids that they were computed from.
import { cacheBytes, EMPTY_CACHE, type ParkedCache } from "./kv-cache.ts";

interface Entry {
  readonly tokens: Int32Array;
  readonly cache: ParkedCache;
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
  park(tokens: Int32Array, cache: ParkedCache): void {
    const key = keyOf(tokens);
    this.#entries.set(key, [...(this.#entries.get(key) ?? []), { tokens, cache }]);
    this.#sizeBytes += cacheBytes(cache);
    for (const [oldest, entries] of this.#entries) {
      if (this.#sizeBytes <= this.#limitBytes) break;
      this.#sizeBytes -= entries.reduce((sum, entry) => sum + cacheBytes(entry.cache), 0);
      this.#entries.delete(oldest);
    }
  }

  /** The cache that was parked for exactly this stream, which is no longer parked then; empty when there is none. */
  take(tokens: Int32Array): ParkedCache {
    const key = keyOf(tokens);
    const entries = this.#entries.get(key) ?? [];
    const at = entries.findIndex(entry => isEqual(entry.tokens, tokens));
    if (at === -1) return EMPTY_CACHE;
    const [{ cache }] = entries.splice(at, 1);
    if (entries.length === 0) this.#entries.delete(key);
    this.#sizeBytes -= cacheBytes(cache);
    return cache;
  }

  clear(): void {
    this.#entries.clear();
    this.#sizeBytes = 0;
  }
}

function keyOf(tokens: Int32Array): string {
  return `${tokens.length}:${tokens.subarray(-KEY_TOKENS).join(",")}`;
}

function isEqual(a: Int32Array, b: Int32Array): boolean {
  return bytesOf(a).equals(bytesOf(b));
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
