// The protocol for small models: an answer is one shell command, or the word `done`; an observation is what the command
// printed, with a short note where there was nothing or something went wrong.
import type { ExecResult } from "../sandbox/sandbox.ts";

export type CompactAction =
  | { readonly kind: "command"; readonly command: string }
  | { readonly kind: "done" };

export function parseAnswer(answer: string): CompactAction {
  const command = answer.trim();
  return command === "done" ? { kind: "done" } : { kind: "command", command };
}

/** The shell text that runs a command with its errors in the order in which they were printed. */
export function shellText(command: string): string {
  return `exec 2>&1\n${command}`;
}

/** The name of the shell before its own messages; it tells nothing and costs a small context ten tokens. */
const SHELL_PREFIX = /^(?:\/\S*\/)?sh: (?:\d+: )?(?:eval: )?(?:line \d+: )?/gm;

/**
 * @param output text of the command's output, already limited
 * @returns `[ok]` for success without output; else the output, with a line `[exit N]` and the like below it
 */
export function formatObservation(output: string, end: ExecResult["end"]): string {
  const text = output.replace(SHELL_PREFIX, "").replace(/^\n+|\n+$/g, "");
  const note = describeEnd(end);
  if (note === undefined) return text === "" ? "[ok]" : text;
  return text === "" ? note : `${text}\n${note}`;
}

function describeEnd(end: ExecResult["end"]): string | undefined {
  switch (end.kind) {
    case "exited":
      return end.exitCode === 0 ? undefined : `[exit ${end.exitCode}]`;
    case "signalled":
      return `[killed by ${end.signal}]`;
    case "timed-out":
      return `[timed out after ${end.limitMs / 1000} s]`;
    default:
      return end satisfies never;
  }
}

/** Keeps the first two thirds and the last third of a limit, with a marker between; a marker alone is no use below 8. */
export function limitTokens(tokens: readonly number[], limit: number, marker: readonly number[]): number[] {
  if (tokens.length <= limit) return [...tokens];
  if (limit < marker.length + 8) return tokens.slice(0, limit);
  const room = limit - marker.length;
  const tail = Math.floor(room / 3);
  return [...tokens.slice(0, room - tail), ...marker, ...tokens.slice(tokens.length - tail)];
}
