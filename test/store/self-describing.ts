// Bytes that prove to be complete: a hash, then the content that it is the hash of.
import { sha256 } from "../../src/files/sha256.ts";

const HASH_LENGTH = 64;

export function selfDescribing(sizeBytes: number): Uint8Array {
  const content = Buffer.alloc(sizeBytes, `${sizeBytes} `);
  return Buffer.concat([Buffer.from(sha256(content)), content]);
}

export function isWhole(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, HASH_LENGTH)).toString() === sha256(bytes.subarray(HASH_LENGTH));
}
