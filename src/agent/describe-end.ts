// Says how a command ended, in the words that an agent reads.
import type { ExecResult } from "../sandbox/sandbox.ts";

/** "[exit 2]", "[killed by SIGKILL]", "[timed out after 5 s]" */
export function describeEnd(end: ExecResult["end"]): string {
  switch (end.kind) {
    case "exited":
      return `[exit ${end.exitCode}]`;
    case "signalled":
      return `[killed by ${end.signal}]`;
    case "timed-out":
      return `[timed out after ${end.limitMs / 1000} s]`;
    default:
      return end satisfies never;
  }
}
