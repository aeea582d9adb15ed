// What may be a key. The rules are the same for every store, so that a run can move from a folder to a bucket: a key
// that works in one works in the other.
import { InputError } from "../failure/errors.ts";

/** First segment of the names that a store keeps for itself; no key may start with it. */
export const PRIVATE_SEGMENT = ".t1-store";

/** S3 allows 1,024 bytes; the rest is room for the prefix of `s3://bucket/prefix`. */
const MAX_KEY_BYTES = 900;
/** NAME_MAX of the usual file systems. */
const MAX_SEGMENT_BYTES = 255;

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
const FORBIDDEN_CHARACTER = /[\u0000-\u001f\u007f\\]/;

/** @throws InputError that says which rule the key breaks */
export function assertKey(key: string): void {
  const broken = key === "" ? "at least one character" : brokenRule(key, key.split("/"));
  if (broken !== undefined) throw invalid("invalid key", key, broken);
}

/** A prefix of keys: like a key, but it may be empty and may end anywhere. @throws InputError */
export function assertPrefix(prefix: string): void {
  if (prefix === "") return;
  const segments = prefix.split("/");
  const last = segments.pop();
  // What follows the last slash may be the beginning of any name, so it may be empty, "." or "..".
  const broken = brokenRule(
    prefix,
    last === "" || last === "." || last === ".." ? segments : [...segments, last],
  );
  if (broken !== undefined) throw invalid("invalid key prefix", prefix, broken);
}

function brokenRule(text: string, segments: readonly (string | undefined)[]): string | undefined {
  if (!text.isWellFormed()) return "well-formed Unicode";
  if (FORBIDDEN_CHARACTER.test(text)) return "no backslash and no control character";
  if (Buffer.byteLength(text) > MAX_KEY_BYTES) return `at most ${MAX_KEY_BYTES} bytes of UTF-8`;
  if (segments[0] === PRIVATE_SEGMENT)
    return `a first segment other than ${PRIVATE_SEGMENT}, which is the store's own`;
  for (const segment of segments) {
    if (segment === "") return "a relative key without empty segments";
    if (segment === "." || segment === "..") return "no segment . or ..";
    if (segment !== undefined && Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
      return `segments of at most ${MAX_SEGMENT_BYTES} bytes`;
  }
  return undefined;
}

function invalid(what: string, text: string, rule: string): InputError {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return new InputError({ what, where: JSON.stringify(shown), expected: `expected ${rule}` });
}
