// The one hash of stored content: etags, manifests and write-once checks all use SHA-256 in hexadecimal.
import { createHash } from "node:crypto";
import { type ByteSource, cut } from "./content.ts";

/** @returns 64 hexadecimal digits */
export function sha256(bytes: Uint8Array): string {
  const hash = createHash("sha256");
  for (const piece of cut(bytes)) hash.update(piece);
  return hash.digest("hex");
}

/** Size and hash of content. */
export interface Digest {
  readonly sizeBytes: number;
  readonly sha256: string;
}

export async function digestOf(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Digest> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  for await (const piece of pieces) {
    hash.update(piece);
    sizeBytes += piece.length;
  }
  return { sizeBytes, sha256: hash.digest("hex") };
}

/** Passes content on and hashes it on its way, so that it is read once. */
export class HashedSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  #digest: Digest | undefined;

  constructor(source: ByteSource) {
    this.sizeBytes = source.sizeBytes;
    this.#source = source;
  }

  /** Of the last pass that came to the end; undefined when none did. */
  get digest(): Digest | undefined {
    return this.#digest;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    let sizeBytes = 0;
    for await (const piece of this.#source.pieces()) {
      hash.update(piece);
      sizeBytes += piece.length;
      yield piece;
    }
    this.#digest = { sizeBytes, sha256: hash.digest("hex") };
  }
}
