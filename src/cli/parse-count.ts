// Whole numbers of the command line. Commander says which option they were given to.
import { InvalidArgumentError } from "commander";
import { LAST_NUMBER } from "../settings/numbers.ts";

/** A seed: from 0. */
export function parseCount(text: string): number {
  return parse(text, 0);
}

/** A version, an iteration, an episode: what the store numbers from 0. */
export function parseNumber(text: string): number {
  return parse(text, 0, LAST_NUMBER);
}

/** How many of what would be nothing at all without one: from 1, to what the store can number. */
export function parsePositiveCount(text: string): number {
  return parse(text, 1, LAST_NUMBER);
}

function parse(text: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= least && count <= most) return count;
  throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
}
