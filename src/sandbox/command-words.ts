// A command of the agent as words and variables for the sandbox's own shell.
import { InputError } from "../failure/errors.ts";
import { captureText } from "./captured-text.ts";
import type { ExecResult } from "./sandbox.ts";

/** Longest single word of a command line is 128 KiB (MAX_ARG_STRLEN); a UTF-16 unit takes up to three bytes. */
const WORD_CHARACTERS = 30_000;
/** All words together may take a quarter of the stack's limit, usually 2 MiB (execve(2)). */
const COMMAND_LIMIT_BYTES = 1 << 20;

/** Puts a long command together again, and leaves no variable of its own behind. */
const JOINED = `command=
for part do command=$command$part; done
set --
eval "unset command part
$command"`;

/** `/bin/sh -c command`, however long the command. */
export function shellWords(command: string): readonly string[] {
  if (command.length <= WORD_CHARACTERS) return ["/bin/sh", "-c", command];
  return ["/bin/sh", "-c", JOINED, "/bin/sh", ...splitText(command, WORD_CHARACTERS)];
}

/** Why no shell can be given this command. That is the policy's doing, so it becomes a result like any other. */
export function whyNotRunnable(command: string): string | undefined {
  if (command.includes("\0")) return "the command holds a NUL byte";
  const bytes = Buffer.byteLength(command);
  return bytes > COMMAND_LIMIT_BYTES
    ? `the command is too long: ${bytes} bytes, at most ${COMMAND_LIMIT_BYTES}`
    : undefined;
}

/** The result of a command that no shell can be given. */
export function refusedCommand(reason: string): ExecResult {
  return {
    end: { kind: "exited", exitCode: 126 },
    ...{ stdout: captureText(""), stderr: captureText(`sh: ${reason}\n`), durationMs: 0 },
  };
}

/** @throws InputError for a name that a shell cannot export or a value that no process can have */
export function assertEnvironment(env: Readonly<Record<string, string>>, where: string): void {
  for (const [name, value] of Object.entries(env)) {
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !value.includes("\0")) continue;
    throw new InputError({
      what: `not an environment variable: ${JSON.stringify(name)}`,
      where,
      expected: "a name of letters, digits and _, and a value without NUL",
      fix: "rename or remove it",
    });
  }
}

/** Pieces of at most `length` UTF-16 units, never cut inside a surrogate pair. */
function splitText(text: string, length: number): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + length, text.length);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}
