// Proof that training sees what the sampler produced. The sampler hashes a turn where it made it; the trainer hashes
// the tensors it is about to train on and compares, before any weight changes.
import { createHash } from "node:crypto";
import { bytesOf, PrefixHashes } from "./prefix-hashes.ts";
import type { Routes } from "./routes.ts";

export interface SampledTurn {
  /** The whole stream before the first sampled token. */
  readonly prompt: Int32Array;
  readonly sampled: Int32Array;
  /** One per sampled token, nats. */
  readonly logProbs: Float32Array;
  /** Rows first returned with this turn: from those the caller held up to the second to last token; none without experts. */
  readonly routes?: Routes | undefined;
  readonly policyVersion: number;
}

/** Marks the layout of the hashed bytes; it changes when they do. */
const RECEIPT_FORMAT = 2;

/**
 * SHA-256 over every number of a turn, bit for bit: lengths and shapes, the chain of the prompt's blocks
 * (prefix-hashes.ts) and the tokens behind the last full block, sampled tokens, log-probs, routes.
 *
 * Lengths come first, so that no two different turns share their bytes.
 *
 * @param prefixes of this stream's earlier turns; with them the cost is that of the new tokens
 * @returns 32 bytes
 */
export function computeReceipt(
  { prompt, sampled, logProbs, routes, policyVersion }: SampledTurn,
  prefixes = new PrefixHashes(),
): Uint8Array {
  const header = [RECEIPT_FORMAT, policyVersion, prompt.length, sampled.length, logProbs.length];
  // Ids have one or two bytes, so no routes have the shape that stands for none.
  const shape =
    routes === undefined
      ? [0, 0, 0, 0]
      : [routes.rowCount, routes.layerCount, routes.expertsPerToken, routes.ids.BYTES_PER_ELEMENT];
  const { digest, tokenCount } = prefixes.of(prompt);
  const ids = routes?.ids ?? new Uint8Array(0);
  const hash = createHash("sha256");
  for (const part of [
    Int32Array.from([...header, ...shape]),
    digest,
    prompt.subarray(tokenCount),
    sampled,
    logProbs,
    ids,
  ])
    hash.update(bytesOf(part));
  return new Uint8Array(hash.digest());
}
