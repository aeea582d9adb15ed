// The functions that Step Functions adds to JSONata, with its names and limits. Like Step Functions, we have no `$eval`:
// an expression made at run time could not be checked when the machine is loaded.
// Source: Step Functions developer guide, "JSONata functions provided by Step Functions".
import { createHash } from "node:crypto";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import type { Json } from "./json-value.ts";

/** The guide's limit for one `$range`. */
const LONGEST_RANGE = 1_000;

const HASHES: Readonly<Record<string, string>> = {
  MD5: "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-384": "sha384",
  "SHA-512": "sha512",
};

/** The pure functions among them, with their JSONata signatures. */
export const PURE_FUNCTIONS: readonly (readonly [string, (...args: never[]) => unknown, string])[] = [
  ["partition", partition, "<an:a>"],
  ["range", range, "<nnn:x>"],
  ["hash", hash, "<s-s?:s>"],
  ["parse", parse, "<s-:x>"],
];

/** `$random` and `$uuid` draw from the execution's own stream, so that a run with a seed is repeatable. */
export function randomFunctions(stream: RandomStream): Readonly<Record<string, (seed?: number) => unknown>> {
  return {
    random: (seed?: number) =>
      seed === undefined ? stream.uniform() : new RandomStream(deriveSeed("$random", seed)).uniform(),
    uuid: () => drawUuid(stream),
  };
}

function drawUuid(stream: RandomStream): string {
  return formatUuid(Array.from({ length: 4 }, () => stream.bits().toString(16).padStart(8, "0")).join(""));
}

/** A version 4 UUID (RFC 9562). @param hex 32 random hexadecimal digits */
export function formatUuid(hex: string): string {
  const variant = ((Number.parseInt(hex[16], 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20),
  ].join("-");
}

function partition(list: readonly Json[], size: number): Json[][] {
  if (!(Number.isFinite(size) && Math.round(size) >= 1))
    throw new RangeError(`$partition: the size must be a positive number, got ${size}`);
  const step = Math.round(size);
  const parts: Json[][] = [];
  for (let at = 0; at < list.length; at += step) parts.push(list.slice(at, at + step));
  return parts;
}

/** Returns a list of one as its element, like every JSONata sequence (recorded on AWS: `$range(1, 9, 9)` is `1`). */
function range(first: number, last: number, step: number): number | number[] {
  const [from, to, by] = [first, last, step].map(Math.round);
  if (by === 0) throw new RangeError("$range: the step must not be 0");
  const length = Math.max(0, Math.floor((to - from) / by) + 1);
  if (length > LONGEST_RANGE)
    throw new RangeError(`$range: at most ${LONGEST_RANGE} elements, these would be ${length}`);
  const list = Array.from({ length }, (_, index) => from + index * by);
  return list.length === 1 ? list[0] : list;
}

function hash(data: string, algorithm = "SHA-256"): string {
  const name = HASHES[algorithm];
  if (name === undefined)
    throw new RangeError(
      `$hash: the algorithm must be one of ${Object.keys(HASHES).join(", ")}, got ${algorithm}`,
    );
  return createHash(name).update(data).digest("hex");
}

function parse(text: string): unknown {
  return JSON.parse(text);
}
