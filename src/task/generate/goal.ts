// A family's goal in a world: its instruction, ways to reach it, ways to miss it, and the checks that tell them apart.
import type { World } from "./world.ts";

/** Commands, one per turn. */
export type Commands = readonly string[];

export interface Check {
  readonly name: string;
  /** Shell condition, run in the working directory. False before anything was done. */
  readonly condition: string;
}

interface Goal {
  readonly instruction: string;
  readonly solution: Commands;
  /** Mistakes a beginner makes: wrong redirection, a forgotten flag, a guess instead of a look. */
  readonly flawed: readonly Commands[];
  readonly checks: readonly Check[];
}

export interface Family {
  readonly name: string;
  /** The instruction does not say enough: the agent has to read something from the sandbox first. */
  readonly looks: boolean;
  /** The goal allows no other file of its ending, so it does not combine with families that write some. */
  readonly needsLoneFile?: boolean;
  readonly writesOtherEndings?: boolean;
  readonly build: (world: World) => Goal;
}

export const isFile = (path: string): Check => ({ name: `${path} is a file`, condition: `[ -f ${path} ]` });
export const isFolder = (path: string): Check => ({
  name: `${path} is a folder`,
  condition: `[ -d ${path} ]`,
});

/** The file's text, without the newline at its end. Content is made of letters, digits, spaces, `=` and newlines. */
export function contains(path: string, lines: readonly string[]): Check {
  return { name: `${path} has the right content`, condition: `[ "$(cat ${path})" = '${lines.join("\n")}' ]` };
}

export function hasLine(path: string, line: string): Check {
  return { name: `${path} has the line ${line}`, condition: `grep -qx '${line}' ${path}` };
}

/** An invariant is checked together with the change it guards, or it would hold before anything was done. */
export function together(name: string, ...checks: readonly Check[]): Check {
  return { name, condition: checks.map(check => check.condition).join(" && ") };
}

export const isGone = (path: string): Check => ({ name: `${path} is gone`, condition: `[ ! -e ${path} ]` });
