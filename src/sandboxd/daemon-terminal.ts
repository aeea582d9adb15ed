// Terminals of a sandbox whose daemon does the work.
import { captureText } from "../sandbox/captured-text.ts";
import type { CapturedOutput, Terminal, TerminalView } from "../sandbox/sandbox.ts";
import { capturedOf } from "./captured-sizes.ts";
import type { DaemonClient } from "./client.ts";
import { PIECE_BYTES } from "./protocol.ts";

/** One whose shell the daemon has. */
export class DaemonTerminal implements Terminal {
  readonly closed: Promise<void>;
  readonly #client: DaemonClient;
  readonly #terminal: string;
  readonly #limitBytes: number;
  readonly #given = Promise.withResolvers<void>();

  constructor(client: DaemonClient, terminal: string, limitBytes: number) {
    this.#client = client;
    this.#terminal = terminal;
    this.#limitBytes = limitBytes;
    // A terminal whose daemon is gone is closed too.
    const ended = client.call({ op: "terminal-closed", terminal }).then(
      () => undefined,
      () => undefined,
    );
    this.closed = Promise.race([ended, this.#given.promise]);
  }

  async send(keys: string | Uint8Array): Promise<number> {
    const bytes = typeof keys === "string" ? Buffer.from(keys) : keys;
    let taken = 0;
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
      const piece = bytes.subarray(start, start + PIECE_BYTES);
      const { value } = await this.#client.call({ op: "terminal-send", terminal: this.#terminal }, piece);
      if (value.taken > piece.length) throw this.#client.distrust("takes more keys than it was sent");
      taken += value.taken;
      if (value.taken < piece.length) break;
    }
    return taken;
  }

  async readNew(): Promise<CapturedOutput> {
    const { value, body } = await this.#client.call({ op: "terminal-read", terminal: this.#terminal });
    return capturedOf(this.#client, value, body, this.#limitBytes);
  }

  async screen(): Promise<readonly string[]> {
    return (await this.view()).screen;
  }

  async view(): Promise<TerminalView> {
    const { value } = await this.#client.call({ op: "terminal-view", terminal: this.#terminal });
    return value;
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#client.call({ op: "terminal-resize", terminal: this.#terminal, columns, rows });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Answered when its shell has ended, so that nobody has to wait for word of that too.
    const closing = this.#client.call({ op: "terminal-close", terminal: this.#terminal });
    await Promise.race([closing.catch(() => undefined), this.closed]);
    this.#given.resolve();
  }
}

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
