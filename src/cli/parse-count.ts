// Whole numbers of the command line. Commander says which option they were given to.
import { InvalidArgumentError } from "commander";

/** A version, an index, a seed: from 0. */
export function parseCount(text: string): number {
  return parse(text, 0);
}

/** How many of what would be nothing at all without one: from 1. */
export function parsePositiveCount(text: string): number {
  return parse(text, 1);
}

function parse(text: string, least: number): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(count) && count >= least) return count;
  throw new InvalidArgumentError(`Expected a whole number from ${least}.`);
}
