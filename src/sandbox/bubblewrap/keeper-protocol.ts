// What the driver and its keeper say to each other over Node's channel between parent and child.
import { z } from "zod";
import { ERROR_NAMES, Failure, InputError, InvariantError } from "../../failure/errors.ts";
import type {
  CapturedOutput,
  DownloadResult,
  ExecOptions,
  ExecResult,
  FileChange,
  Lease,
  SandboxSpec,
  SuccessorOptions,
  TerminalOptions,
  TerminalView,
  UploadOptions,
  UploadResult,
} from "../sandbox.ts";

/** Sandboxes and terminals go by numbers that the keeper gives. */
export interface KeeperCalls {
  open(runParent: string | undefined): Promise<void>;
  create(spec: SandboxSpec, lease: Lease): Promise<number>;
  sweep(): Promise<readonly string[]>;
  dispose(): Promise<void>;
  exec(sandbox: number, command: string, options: Omit<ExecOptions, "signal">): Promise<ExecResult>;
  upload(sandbox: number, tar: Uint8Array, folder: string, options?: UploadOptions): Promise<UploadResult>;
  download(sandbox: number, folder: string, limitBytes: number): Promise<DownloadResult>;
  killAgents(sandbox: number): Promise<void>;
  changedFiles(sandbox: number): Promise<readonly FileChange[]>;
  successor(
    sandbox: number,
    lease: Lease,
    options: SuccessorOptions,
  ): Promise<number | { readonly refused: string }>;
  end(sandbox: number): Promise<void>;
  openTerminal(sandbox: number, options: TerminalOptions): Promise<number>;
  send(terminal: number, keys: string | Uint8Array): Promise<number>;
  readNew(terminal: number): Promise<CapturedOutput>;
  screen(terminal: number): Promise<readonly string[]>;
  view(terminal: number): Promise<TerminalView>;
  resize(terminal: number, columns: number, rows: number): Promise<void>;
  closed(terminal: number): Promise<void>;
  closeTerminal(terminal: number): Promise<void>;
}
export type CallName = keyof KeeperCalls;

/** Arguments and results are not looked into: both sides are this program in one version. */
export const KeeperRequest = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("call"), call: z.int(), name: z.string(), args: z.array(z.unknown()) }),
  z.strictObject({ kind: z.literal("cancel"), call: z.int() }),
]);
export type KeeperRequest = z.infer<typeof KeeperRequest>;

const SentError = z.strictObject({
  name: z.enum([...ERROR_NAMES, "Cancelled"]),
  message: z.string(),
  retryable: z.boolean(),
});
type SentError = z.infer<typeof SentError>;

export const KeeperReply = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("result"), call: z.int(), result: z.unknown() }),
  z.strictObject({ kind: z.literal("error"), call: z.int(), error: SentError }),
]);
export type KeeperReply = z.infer<typeof KeeperReply>;

/** Why a call was given up. The caller has the reason itself, and gets that one back. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

export function encodeError(error: unknown): SentError {
  if (error instanceof Cancelled) return { name: "Cancelled", message: "", retryable: false };
  if (error instanceof Failure)
    return { name: error.name, message: error.message, retryable: error.retryable };
  if (error instanceof InputError) return { name: "InputError", message: error.message, retryable: false };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { name: "InvariantError", message, retryable: false };
}

export function decodeError({ name, message, retryable }: SentError): Error {
  if (name === "Cancelled") return new Cancelled();
  if (name === "InputError") return new InputError(message);
  return name === "InvariantError" ? new InvariantError(message) : new Failure(name, message, { retryable });
}
