// The content of a Terminus-2 reply, in either of its two formats. The words of errors
// and warnings are Harbor's (0.26, agents/terminus_2), since a policy reads them and may have been trained on them.

export interface Keystrokes {
  readonly keys: string;
  /** Seconds to wait from the moment the keys are sent; never more than 60. */
  readonly durationSec: number;
}

export interface ParsedReply {
  /** Empty when there is an error. */
  readonly commands: readonly Keystrokes[];
  readonly isComplete: boolean;
  /** Nothing is run, and the policy is told why. */
  readonly error?: string;
  /** Each a line that the policy reads with the next observation. */
  readonly warnings: readonly string[];
  readonly analysis: string;
  readonly plan: string;
}

/** The longest wait of one command; Harbor's. */
const LONGEST_WAIT_SEC = 60;
export const DEFAULT_DURATION_SEC = 1;

/** NaN means no wait, as in Harbor's comparison. */
export function limitDuration(durationSec: number): number {
  return Number.isNaN(durationSec) ? 0 : Math.min(Math.max(durationSec, 0), LONGEST_WAIT_SEC);
}

/**
 * Two commands of which the first has no newline become one line. An empty one only waits (harbor#2308).
 *
 * @param index of the command among `count`
 */
export function newlineWarning(keys: string, index: number, count: number): string[] {
  if (index === count - 1 || keys === "" || keys.endsWith("\n")) return [];
  return [
    `Command ${index + 1} should end with newline when followed by another command. Otherwise the two commands will be concatenated together on the same line.`,
  ];
}

/** The order in which a reply names what it has; other than analysis, plan, commands draws a warning. */
export function orderWarning(kind: "Fields" | "Sections", positions: ReadonlyMap<string, number>): string[] {
  const expected = [...positions.keys()];
  const found = expected.toSorted((a, b) => (positions.get(a) ?? 0) - (positions.get(b) ?? 0));
  if (found.join() === expected.join()) return [];
  return [`${kind} appear in wrong order. Found: ${found.join(" → ")}, expected: ${expected.join(" → ")}`];
}
