// A sandbox whose daemon does what is asked of it, wherever it runs. What it answers is compared with what was asked: the
// agent may have got hold of it.
import { randomUUID } from "node:crypto";
import { Failure } from "../failure/errors.ts";
import {
  assertPath,
  type CommandDefaults,
  commandContext,
  commandRequest,
  DEFAULT_OUTPUT_LIMIT_BYTES,
  TERMINAL_NAME,
  TERMINAL_SHELL,
} from "../sandbox/command-request.ts";
import { RequestedCommands } from "../sandbox/requested-commands.ts";
import type {
  DownloadResult,
  ExecOptions,
  ExecResult,
  Lease,
  Terminal,
  TerminalOptions,
  UploadOptions,
  UploadResult,
} from "../sandbox/sandbox.ts";
import { capturedOf } from "./captured-sizes.ts";
import type { DaemonClient } from "./client.ts";
import { BODY_LIMIT_BYTES } from "./frames.ts";
import { PIECE_BYTES } from "./protocol.ts";
import { RefusedTerminal, RemoteTerminal } from "./remote-terminal.ts";

/** Both streams of a command have to fit into one answer. */
const OUTPUT_LIMIT_BYTES = BODY_LIMIT_BYTES / 2;

/** The offence of a daemon that continues a download after a short piece. */
export const ENDLESS_DOWNLOAD = "does not come to the end of a download";

export interface UserDefaults extends CommandDefaults {
  readonly user: string | undefined;
}

export interface UploadDetails extends UploadOptions {
  /** Entries that are removed before anything is unpacked. */
  readonly removed?: readonly string[];
  readonly keepOwners?: boolean;
}

export class DaemonSandbox {
  readonly lease: Lease;
  readonly #client: DaemonClient;
  readonly #defaults: UserDefaults;
  readonly #requested = new RequestedCommands();
  #killing: Promise<void> | undefined;

  constructor(lease: Lease, client: DaemonClient, defaults: UserDefaults) {
    this.lease = lease;
    this.#client = client;
    this.#defaults = defaults;
  }

  exec(command: string, options: ExecOptions): Promise<ExecResult> {
    return this.#requested.run(options.requestId, command, () => this.#exec(command, options));
  }

  async terminal(options: TerminalOptions): Promise<Terminal> {
    await this.#killing;
    const { columns, rows, cwd, env, outputLimitBytes, historyLines } = options;
    const terminal = randomUUID();
    const limitBytes = Math.min(outputLimitBytes ?? DEFAULT_OUTPUT_LIMIT_BYTES, OUTPUT_LIMIT_BYTES);
    const { value } = await this.#client.call({
      ...{ op: "terminal-open", terminal, argv: [...TERMINAL_SHELL], columns, rows },
      ...commandContext(this.#defaults, { cwd, env: { ...env, TERM: TERMINAL_NAME } }),
      user: this.#defaults.user,
      outputLimitBytes: limitBytes,
      ...(historyLines !== undefined && { historyLines }),
    });
    // The agent's doing, for it had all numbers of processes or all terminals.
    return value.refused === undefined
      ? new RemoteTerminal(this.#client, terminal, limitBytes)
      : new RefusedTerminal(value.refused, rows);
  }

  /** @param details what only providers ask for goes beyond the contract */
  async upload(
    tar: Uint8Array,
    folder: string,
    { emptied = [], removed = [], keepOwners = false }: UploadDetails = {},
  ): Promise<UploadResult> {
    for (const path of [folder, ...emptied, ...removed]) assertPath(path);
    const transfer = randomUUID();
    for (let start = 0; ; start += PIECE_BYTES) {
      const piece = tar.subarray(start, start + PIECE_BYTES);
      const isLast = start + PIECE_BYTES >= tar.length;
      const lists = { emptied: [...emptied], removed: [...removed] };
      const { value } =
        start === 0
          ? await this.#client.call({ op: "upload", transfer, folder, ...lists, keepOwners, isLast }, piece)
          : await this.#client.call({ op: "upload-more", transfer, isLast }, piece);
      if (value.refused !== undefined) return { refused: value.refused };
      if (isLast) return { unpacked: true };
    }
  }

  /** @param paths only these, each under its own name below the folder */
  async download(folder: string, limitBytes: number, paths?: readonly string[]): Promise<DownloadResult> {
    assertPath(folder);
    const transfer = randomUUID();
    const pieces: Uint8Array[] = [];
    const some = paths === undefined ? {} : { paths: [...paths] };
    let sizeBytes = 0;
    let isAtEnd = false;
    for (let isFirst = true; ; isFirst = false) {
      const { value, body } = isFirst
        ? await this.#client.call({ op: "download", transfer, folder, ...some, limitBytes })
        : await this.#client.call({ op: "download-more", transfer });
      switch (value.state) {
        case "missing":
          return { missing: true };
        case "oversized":
          return { oversized: true };
        case "refused":
          return { refused: value.refused ?? "for no reason" };
        case "done":
          return { tar: new Uint8Array(Buffer.concat(pieces)) };
        case "more":
          // Ours counts too, and sends no short piece but the last: or the end would never have to come.
          if (isAtEnd) throw this.#client.distrust(ENDLESS_DOWNLOAD);
          isAtEnd = body.length < PIECE_BYTES;
          pieces.push(body);
          sizeBytes += body.length;
          if (sizeBytes > limitBytes) return { oversized: true };
          break;
        default:
          value satisfies never;
      }
    }
  }

  killAgents(): Promise<void> {
    this.#killing ??= this.#kill().finally(() => {
      this.#killing = undefined;
    });
    return this.#killing;
  }

  async #kill(): Promise<void> {
    const { value } = await this.#client.call({ op: "kill-agents" });
    if (value.isEmpty) return;
    throw new Failure("SandboxBroken", `processes inside of sandbox ${this.lease.id} cannot be ended`, {
      retryable: false,
    });
  }

  async #exec(command: string, options: ExecOptions): Promise<ExecResult> {
    const { user = this.#defaults.user, stdin, signal, requestId } = options;
    signal?.throwIfAborted();
    const request = commandRequest(command, options, { lease: this.lease, defaults: this.#defaults });
    if ("refused" in request) return request.refused;
    await this.#killing;
    const id = requestId ?? randomUUID();
    const limitBytes = Math.min(request.outputLimitBytes, OUTPUT_LIMIT_BYTES);
    const asked = this.#client.call(
      {
        ...{ op: "exec", requestId: id, ...request, argv: [...request.argv], user },
        ...{ outputLimitBytes: limitBytes, isKept: requestId !== undefined },
      },
      stdin,
    );
    const giveUp = (): void => {
      this.#client.call({ op: "cancel", requestId: id }).catch(() => undefined); // the call itself tells
    };
    signal?.addEventListener("abort", giveUp);
    try {
      const { value, body } = await asked;
      if (signal?.aborted) throw signal.reason;
      const { end, durationMs, stdout, stderr } = value;
      const errorsAt = stdout.headBytes + stdout.tailBytes;
      return {
        ...{ end, durationMs },
        stdout: capturedOf(this.#client, stdout, body.subarray(0, errorsAt), limitBytes),
        stderr: capturedOf(this.#client, stderr, body.subarray(errorsAt), limitBytes),
      };
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }
}
