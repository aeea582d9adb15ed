// The protocol of models that call tools: one tool, bash, described and answered as the model's own chat template does
// it. An answer without a call ends the episode.
import { capturedText } from "../../sandbox/captured-text.ts";
import type { ExecResult } from "../../sandbox/sandbox.ts";
import { describeEnd } from "../describe-end.ts";
import type { Protocol } from "../protocol.ts";
import { withoutReasoning } from "../reasoning.ts";
import { parseCalls } from "./parse-calls.ts";

export const bashToolProtocol: Protocol = {
  tools: [
    {
      type: "function",
      function: {
        name: "bash",
        description:
          "Runs a command in a new bash in the working directory and returns what it printed and how it ended. Files and background processes stay from one command to the next; variables and the current directory do not. Commands get no input. When the task is done, answer without calling it.",
        parameters: {
          type: "object",
          properties: { command: { type: "string", description: "The command, of one line or several." } },
          required: ["command"],
        },
      },
    },
  ],
  async open(sandbox, instruction, { commandTimeoutMs, outputBytes }) {
    return {
      opening: instruction,
      async play(answer, { turn, leftMs, signal }) {
        const calls = parseCalls(withoutReasoning(answer));
        if (calls.kind === "none") return { kind: "ended", reason: "completed", log: {} };
        if (calls.kind === "error") {
          const text = calls.message;
          return { kind: "observed", role: "user", text, log: { observation: text } };
        }
        if (leftMs <= 0) return { kind: "ended", reason: "time_limit", log: {} };
        const texts: string[] = [];
        let result: ExecResult | undefined;
        let commandMs = 0;
        for (const [index, command] of calls.commands.entries()) {
          if (signal?.aborted || commandMs >= leftMs) break;
          result = await sandbox.exec(shellText(command), {
            timeoutMs: Math.min(commandTimeoutMs, leftMs - commandMs),
            outputLimitBytes: outputBytes,
            requestId: `turn-${turn}-${index}`,
          });
          commandMs += result.durationMs;
          texts.push(formatResult(result));
        }
        const log = {
          command: calls.commands.join("\n"),
          observation: texts.join("\n"),
          commandMs,
          ...(result !== undefined && { result: result.end }),
        };
        return { kind: "observed", role: "tool", texts, log };
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  },
};

/** The command in bash where there is one, with its errors in the order in which they were printed. */
function shellText(command: string): string {
  const quoted = `'${command.replaceAll("'", "'\\''")}'`;
  return `exec 2>&1\nexec "$(command -v bash || echo sh)" -c ${quoted}`;
}

/** The output as it came, and below it how the command ended. */
function formatResult({ stdout, end }: ExecResult): string {
  const output = capturedText(stdout);
  return `${output}${output === "" || output.endsWith("\n") ? "" : "\n"}${describeEnd(end)}`;
}
