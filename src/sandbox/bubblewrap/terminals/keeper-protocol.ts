// What the driver and the keeper of its terminals say to each other over Node's channel between parent and child.
import { z } from "zod";
import { ERROR_NAMES, Failure, InvariantError, isFailureName } from "../../../failure/errors.ts";
import type { CapturedOutput, TerminalOptions, TerminalView } from "../../sandbox.ts";

/** What is started in a terminal, outside of the sandbox that it enters. */
export interface TerminalProgram {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whom the terminal device belongs to, when it is not the user of this process. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

/** Terminals go by numbers that the keeper gives. */
export interface KeeperCalls {
  open(program: TerminalProgram, options: TerminalOptions): Promise<number>;
  send(terminal: number, keys: string | Uint8Array): Promise<number>;
  readNew(terminal: number): Promise<CapturedOutput>;
  screen(terminal: number): Promise<readonly string[]>;
  view(terminal: number): Promise<TerminalView>;
  resize(terminal: number, columns: number, rows: number): Promise<void>;
  closed(terminal: number): Promise<void>;
  /** Ends its shell. What it has shown can still be read. */
  kill(terminal: number): Promise<void>;
  /** Once: it is forgotten then. */
  close(terminal: number): Promise<void>;
}
export type CallName = keyof KeeperCalls;

/** Arguments and results are not looked into: both sides are this program in one version. */
export const KeeperRequest = z.strictObject({ call: z.int(), name: z.string(), args: z.array(z.unknown()) });
export type KeeperRequest = z.infer<typeof KeeperRequest>;

const SentError = z.strictObject({
  name: z.enum(ERROR_NAMES),
  message: z.string(),
  retryable: z.boolean(),
});
type SentError = z.infer<typeof SentError>;

export const KeeperReply = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("result"), call: z.int(), result: z.unknown() }),
  z.strictObject({ kind: z.literal("error"), call: z.int(), error: SentError }),
]);
export type KeeperReply = z.infer<typeof KeeperReply>;

export function encodeError(error: unknown): SentError {
  if (error instanceof Failure)
    return { name: error.name, message: error.message, retryable: error.retryable };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { name: "InvariantError", message, retryable: false };
}

export function decodeError({ name, message, retryable }: SentError): Error {
  return isFailureName(name) ? new Failure(name, message, { retryable }) : new InvariantError(message);
}
