// The protocol for small models: an answer is one shell command, or the word `done`; an observation is what the command
// printed, with a short note where there was nothing or something went wrong.
import { capturedText } from "../sandbox/captured-text.ts";
import type { ExecResult } from "../sandbox/sandbox.ts";
import { describeEnd } from "./describe-end.ts";
import type { Protocol } from "./protocol.ts";

export const compactProtocol: Protocol = {
  async open(sandbox, instruction, { commandTimeoutMs, outputBytes }) {
    return {
      opening: withoutFinalNewline(instruction),
      async play(answer, { turn, leftMs }) {
        const action = parseAnswer(answer);
        if (action.kind === "done") return { kind: "ended", reason: "completed", log: {} };
        if (leftMs <= 0) return { kind: "ended", reason: "time_limit", log: {} };
        const result = await sandbox.exec(shellText(action.command), {
          timeoutMs: Math.min(commandTimeoutMs, leftMs),
          outputLimitBytes: outputBytes,
          requestId: `turn-${turn}`,
        });
        const text = formatObservation(capturedText(result.stdout), result.end);
        const log = {
          command: action.command,
          observation: text,
          result: result.end,
          commandMs: result.durationMs,
        };
        return { kind: "observed", role: "user", text, log };
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  },
};

type CompactAction = { readonly kind: "command"; readonly command: string } | { readonly kind: "done" };

export function parseAnswer(answer: string): CompactAction {
  const command = answer.trim();
  return command === "done" ? { kind: "done" } : { kind: "command", command };
}

/** A text file ends in a newline that is no part of what it says. */
function withoutFinalNewline(instruction: string): string {
  return instruction.endsWith("\n") ? instruction.slice(0, -1) : instruction;
}

/** The shell text that runs a command with its errors in the order in which they were printed. */
function shellText(command: string): string {
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
  if (end.kind === "exited" && end.exitCode === 0) return text === "" ? "[ok]" : text;
  return text === "" ? describeEnd(end) : `${text}\n${describeEnd(end)}`;
}
