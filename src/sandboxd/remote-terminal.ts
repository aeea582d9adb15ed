// Terminals that another process has: the daemon of a container, or the terminal host beside this driver.
import { Failure } from "../failure/errors.ts";
import { captureText } from "../sandbox/captured-text.ts";
import type { CapturedOutput, Terminal, TerminalView } from "../sandbox/sandbox.ts";
import { capturedOf } from "./captured-sizes.ts";
import type { Called } from "./client.ts";
import { PIECE_BYTES, type RequestOf, type TerminalOperation } from "./protocol.ts";

/** Another process that has terminals: a daemon, or the terminal host of this driver. */
export interface TerminalCaller {
  call<Op extends TerminalOperation["op"]>(operation: RequestOf<Op>, body?: Uint8Array): Promise<Called<Op>>;
  /** Gives it up, since it says what ours would not say. @returns the error to throw */
  distrust(detail: string): Error;
}

/** A terminal whose shell another process has. */
export class RemoteTerminal implements Terminal {
  readonly #client: TerminalCaller;
  readonly #terminal: string;
  readonly #limitBytes: number;
  readonly #disposed = Promise.withResolvers<void>();
  #closed: Promise<void> | undefined;
  #disposing: Promise<void> | undefined;

  constructor(client: TerminalCaller, terminal: string, limitBytes: number) {
    this.#client = client;
    this.#terminal = terminal;
    this.#limitBytes = limitBytes;
  }

  /** Asked for only when somebody wants to know: this process stays alive for whoever waits for an answer. */
  get closed(): Promise<void> {
    this.#closed ??= Promise.race([
      // A terminal whose process is gone is closed too.
      this.#client.call({ op: "terminal-closed", terminal: this.#terminal }).then(nothing, nothing),
      this.#disposed.promise,
    ]);
    return this.#closed;
  }

  async send(keys: string | Uint8Array): Promise<number> {
    const bytes = typeof keys === "string" ? Buffer.from(keys) : keys;
    let taken = 0;
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
      const piece = bytes.subarray(start, start + PIECE_BYTES);
      const { value } = await this.#call({ op: "terminal-send", terminal: this.#terminal }, piece);
      if (value.taken > piece.length) throw this.#client.distrust("takes more keys than it was sent");
      taken += value.taken;
      if (value.taken < piece.length) break;
    }
    return taken;
  }

  async readNew(): Promise<CapturedOutput> {
    const { value, body } = await this.#call({ op: "terminal-read", terminal: this.#terminal });
    return capturedOf(this.#client, value, body, this.#limitBytes);
  }

  async screen(): Promise<readonly string[]> {
    return (await this.view()).screen;
  }

  async view(): Promise<TerminalView> {
    const { value } = await this.#call({ op: "terminal-view", terminal: this.#terminal });
    return value;
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#call({ op: "terminal-resize", terminal: this.#terminal, columns, rows });
  }

  /** Ends its shell. What it has shown can still be read. */
  kill(): Promise<void> {
    return this.#disposing ?? this.#end("terminal-kill");
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#end("terminal-close").finally(() => this.#disposed.resolve());
    return this.#disposing;
  }

  /** @throws Failure SandboxLost for one that was given up: the other process does not know it any more */
  async #call<Op extends TerminalOperation["op"]>(
    operation: RequestOf<Op>,
    body?: Uint8Array,
  ): Promise<Called<Op>> {
    if (this.#disposing !== undefined)
      throw new Failure("SandboxLost", "the terminal was closed", { retryable: true });
    return this.#client.call(operation, body);
  }

  /** Where the other process is gone, so is the shell. */
  async #end(op: "terminal-kill" | "terminal-close"): Promise<void> {
    await this.#client.call({ op, terminal: this.#terminal }).catch(nothing);
  }
}

function nothing(): void {}

/** One that could not be opened shows why, and is closed. */
export class RefusedTerminal implements Terminal {
  readonly closed = Promise.resolve();
  readonly #lines: string[];

  constructor(reason: string, rows: number) {
    this.#lines = [`sh: ${reason}`, ...Array.from({ length: rows - 1 }, () => "")];
  }

  async send(): Promise<number> {
    return 0;
  }

  async readNew(): Promise<CapturedOutput> {
    return captureText(`${this.#lines[0]}\n`);
  }

  async screen(): Promise<readonly string[]> {
    return this.#lines;
  }

  async view(): Promise<TerminalView> {
    return { history: [], screen: this.#lines, applicationCursorKeys: false };
  }

  async resize(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
