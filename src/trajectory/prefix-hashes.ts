// A chain of hashes over a token stream that grows from turn to turn: each covers the block before it and its own
// tokens, so the last one stands for the whole prefix, and a longer stream needs only its new blocks hashed.
import { createHash } from "node:crypto";

const BLOCK_TOKENS = 256;

export interface PrefixHash {
  /** Covers the first `tokenCount` tokens; 32 zero bytes for none. */
  readonly digest: Uint8Array;
  /** A multiple of the block size; fewer than one block of tokens is left out. */
  readonly tokenCount: number;
}

/**
 * Remembers the hashes of one stream. They depend on the tokens alone, never on what is remembered: tokens that differ
 * from those seen before are hashed again.
 */
export class PrefixHashes {
  /** The tokens that `#digests` cover, one digest per block. */
  #tokens: Int32Array = new Int32Array(0);
  readonly #digests: Uint8Array[] = [];

  /** @param tokens the stream so far; it must not be written to afterwards */
  of(tokens: Int32Array): PrefixHash {
    this.#forgetWhatDiffers(tokens);
    const blockCount = Math.floor(tokens.length / BLOCK_TOKENS);
    for (let block = this.#digests.length; block < blockCount; block++) {
      const hash = createHash("sha256").update(this.#digest(block));
      hash.update(bytesOf(tokens.subarray(block * BLOCK_TOKENS, (block + 1) * BLOCK_TOKENS)));
      this.#digests.push(new Uint8Array(hash.digest()));
    }
    const tokenCount = blockCount * BLOCK_TOKENS;
    if (tokenCount > this.#tokens.length) this.#tokens = tokens.subarray(0, tokenCount);
    return { digest: this.#digest(blockCount), tokenCount };
  }

  /** Over the first `blockCount` blocks. */
  #digest(blockCount: number): Uint8Array {
    return blockCount === 0 ? new Uint8Array(32) : this.#digests[blockCount - 1];
  }

  #forgetWhatDiffers(tokens: Int32Array): void {
    const isSameArray =
      tokens.buffer === this.#tokens.buffer && tokens.byteOffset === this.#tokens.byteOffset;
    const shared = Math.min(tokens.length, this.#tokens.length);
    if (isSameArray || bytesOf(tokens.subarray(0, shared)).equals(bytesOf(this.#tokens.subarray(0, shared))))
      return;
    const equal = this.#tokens.findIndex((token, at) => token !== tokens[at]);
    this.#digests.length = Math.floor(equal / BLOCK_TOKENS);
    this.#tokens = this.#tokens.subarray(0, this.#digests.length * BLOCK_TOKENS);
  }
}

export function bytesOf({
  buffer,
  byteOffset,
  byteLength,
}: Int32Array | Float32Array | Uint8Array | Uint16Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
