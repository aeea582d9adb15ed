// Everything random is drawn from a seed that is derived here by hashing, never from the clock or a global
// generator: two runs of a stage with the same inputs draw the same numbers.
import { createHash } from "node:crypto";

/**
 * Seed for one purpose, e.g. `deriveSeed(run.seed, iteration, episode, "sampling")`.
 *
 * Parts are length-prefixed before hashing, so ("ab", "c") and ("a", "bc") differ.
 *
 * @returns 32 hexadecimal digits (128 bits of SHA-256)
 */
export function deriveSeed(...parts: readonly (string | number)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const text = typeof part === "number" ? `n${part}` : `s${part}`;
    hash.update(`${Buffer.byteLength(text)}:${text}`);
  }
  return hash.digest("hex").slice(0, 32);
}
