// Checks a command or terminal and fills in its defaults, whichever provider starts it.
import { InvariantError } from "../failure/errors.ts";
import { assertEnvironment, refusedCommand, shellWords, whyNotRunnable } from "./command-words.ts";
import { LONGEST_TIMER_MS } from "./deadline-timer.ts";
import type { ExecOptions, ExecResult, Lease } from "./sandbox.ts";

/** Kept bytes of a stream, unless the caller says otherwise. */
export const DEFAULT_OUTPUT_LIMIT_BYTES = 1 << 20;

/** The name under which terminfo describes what our screens understand. */
export const TERMINAL_NAME = "xterm-256color";

/** Not a login shell: those set PATH anew, and the image's would be lost. */
export const TERMINAL_SHELL: readonly string[] = [
  "/bin/sh",
  "-c",
  "command -v bash >/dev/null && exec bash -i; exec /bin/sh -i",
];

/** Defaults of a sandbox's commands. */
export interface CommandDefaults {
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface CommandContext {
  readonly cwd: string;
  /** All of its environment. */
  readonly env: Record<string, string>;
}

/** @throws InputError for an environment that no process can have */
export function commandContext(
  defaults: CommandDefaults,
  { cwd = defaults.workdir, env = {} }: Pick<ExecOptions, "cwd" | "env">,
): CommandContext {
  assertPath(cwd);
  assertEnvironment(env, "environment of a command");
  // A shell believes PWD when it names the folder it is in, and so keeps the name of a link.
  return { cwd, env: { PWD: cwd, ...defaults.env, ...env } };
}

export interface CommandRequest extends CommandContext {
  readonly argv: readonly string[];
  readonly limitMs: number;
  readonly outputLimitBytes: number;
}

/**
 * @returns the command as it is started, or its result where no shell can be given it: that is the policy's doing
 * @throws InputError as `commandContext`
 */
export function commandRequest(
  command: string,
  options: ExecOptions,
  { lease, defaults }: { readonly lease: Lease; readonly defaults: CommandDefaults },
): CommandRequest | { readonly refused: ExecResult } {
  const { timeoutMs, outputLimitBytes = DEFAULT_OUTPUT_LIMIT_BYTES } = options;
  if (!(timeoutMs > 0))
    throw new InvariantError("a command's time limit is positive", { timeoutMs, command });
  const refusal = whyNotRunnable(command);
  if (refusal !== undefined) return { refused: refusedCommand(refusal) };
  return {
    ...{ argv: shellWords(command), ...commandContext(defaults, options) },
    // One that starts at the deadline ends right away.
    limitMs: Math.max(1, Math.min(timeoutMs, lease.deadlineMs - Date.now(), LONGEST_TIMER_MS)),
    outputLimitBytes,
  };
}

export function assertPath(path: string): void {
  if (!path.startsWith("/") || path.includes("\0"))
    throw new InvariantError("a path inside is absolute, without NUL", { path });
}
