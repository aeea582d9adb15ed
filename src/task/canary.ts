// Canary comments mark benchmark files so that they can be found in training corpora. The agent must not see them.
import { stripSpace } from "./strip-space.ts";

const CANARY = /^(<!--[^\n]*canary[^\n]*-->|#[^\n]*canary[^\n]*)$/i;

/**
 * Drops canary comments from the head of an instruction, and the blank lines that follow them.
 * Everything after that is returned byte for byte. As in Harbor, blank lines at the head go even without a canary.
 */
export function stripCanary(instruction: string): string {
  let from = skipLines(instruction, 0, line => CANARY.test(line));
  from = skipLines(instruction, from, line => line === "");
  return instruction.slice(from);
}

/** @returns where the first line begins that does not match; the length of the text when all do. */
function skipLines(text: string, from: number, matches: (stripped: string) => boolean): number {
  while (from < text.length) {
    const end = text.indexOf("\n", from);
    const line = text.slice(from, end === -1 ? undefined : end);
    if (!matches(stripSpace(line))) break;
    from = end === -1 ? text.length : end + 1;
  }
  return from;
}
