// A terminal on this machine's side: a pty for the program, and a screen that remembers what a person would see.
// Behaviour: pty(7); termios(3), canonical mode; screen: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
import { chownSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type IPty, spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { InvariantError } from "../failure/errors.ts";
import { hasCode } from "../files/file-errors.ts";
import { DEFAULT_OUTPUT_LIMIT_BYTES, TERMINAL_NAME } from "./command-request.ts";
import { addLeakingDescriptor } from "./leaking-descriptors.ts";
import { OutputCapture } from "./output-capture.ts";
import type { CapturedOutput, Terminal, TerminalOptions, TerminalView } from "./sandbox.ts";

const DEFAULT_HISTORY_LINES = 1000;

const DEFAULT_SEND_WAIT_MS = 5_000;
const SEND_RETRY_MS = 2;
/** One write to a pty; the kernel takes at most 4 KiB of it at a time. */
const SEND_CHUNK_BYTES = 4096;

/** The program is paused while the screen is this far behind: it may print faster than the screen can follow. */
const SCREEN_BACKLOG_BYTES = 256 << 10;

/** From the hang-up until the terminal is taken from a program that ignores it. */
const HANG_UP_WAIT_MS = 500;

/** Fields of node-pty that its types leave out: the master's descriptor, the stream that owns it, the name of the pty. */
type PtyInternals = {
  readonly fd: number;
  readonly _socket: { readonly destroyed: boolean; destroy(): void };
  readonly ptsName: string;
};

type ScreenBuffer = InstanceType<typeof xterm.Terminal>["buffer"]["active"];

export interface TerminalProcess {
  /** Environment of argv[0], which is not that of the sandbox. */
  readonly env: Readonly<Record<string, string>>;
  /** Working directory of argv[0]; `/` when not given. */
  readonly cwd?: string;
  /** The owner of the terminal device, when it is not the user of this process. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
  /** argv[0] runs as the owner; else it becomes him by itself. */
  readonly isRunByOwner?: boolean;
  /** Told the terminal's own descriptor before anything else is started. */
  readonly onOpen?: (fd: number) => void;
  /** Signals the shell, given the process that node-pty started. */
  readonly signal: (pid: number, signal: "SIGHUP" | "SIGKILL") => void;
  /** How long `send` waits for a program that reads nothing; 5 s when not given. */
  readonly sendWaitMs?: number;
}

export class PseudoTerminal implements Terminal {
  readonly closed: Promise<void>;
  readonly #pty: IPty & PtyInternals;
  readonly #screen: InstanceType<typeof xterm.Terminal>;
  /** Asked for at the start: xterm makes it when it is asked for, and complains when that is after the end. */
  readonly #buffer: InstanceType<typeof xterm.Terminal>["buffer"];
  readonly #outputLimitBytes: number;
  readonly #signal: TerminalProcess["signal"];
  readonly #sendWaitMs: number;
  #output: OutputCapture;
  #backlogBytes = 0;
  #isClosed = false;
  #sending: Promise<unknown> = Promise.resolve();

  constructor(
    argv: readonly string[],
    {
      columns,
      rows,
      outputLimitBytes = DEFAULT_OUTPUT_LIMIT_BYTES,
      historyLines = DEFAULT_HISTORY_LINES,
    }: TerminalOptions,
    {
      env,
      cwd = "/",
      owner,
      isRunByOwner = false,
      onOpen = () => undefined,
      signal,
      sendWaitMs = DEFAULT_SEND_WAIT_MS,
    }: TerminalProcess,
  ) {
    this.#signal = signal;
    this.#sendWaitMs = sendWaitMs;
    this.#outputLimitBytes = outputLimitBytes;
    this.#output = new OutputCapture(outputLimitBytes);
    this.#screen = new xterm.Terminal({
      cols: columns,
      rows,
      scrollback: historyLines,
      allowProposedApi: true,
    });
    this.#buffer = this.#screen.buffer;
    const [program = "", ...args] = argv;
    const pty = spawn(program, args, {
      name: TERMINAL_NAME,
      cols: columns,
      rows,
      cwd,
      env: { ...env },
      encoding: null,
      ...(isRunByOwner && owner !== undefined ? { uid: owner.uid, gid: owner.gid } : {}),
    });
    if (!hasInternals(pty))
      throw new InvariantError("node-pty has changed inside", { keys: Object.keys(pty) });
    this.#pty = pty;
    onOpen(pty.fd);
    if (owner !== undefined) chownSync(pty.ptsName, owner.uid, owner.gid);
    const forget = addLeakingDescriptor(pty.fd);
    // With `encoding: null` data comes as Buffer, whatever the types say.
    pty.onData(data => this.#receive(data as unknown as Buffer));
    // Programs ask the terminal for the position of the cursor and for its kind; a real one answers as if typed.
    this.#screen.onData(answer => void this.send(answer));
    this.closed = new Promise(resolve => {
      pty.onExit(() => {
        this.#isClosed = true;
        forget();
        resolve();
      });
    });
  }

  /** Number of the process that runs in it. */
  get pid(): number {
    return this.#pty.pid;
  }

  send(keys: string | Uint8Array): Promise<number> {
    const bytes = typeof keys === "string" ? Buffer.from(keys) : keys;
    const sent = this.#sending.then(() => this.#send(bytes));
    this.#sending = sent.catch(() => undefined);
    return sent;
  }

  async readNew(): Promise<CapturedOutput> {
    const output = this.#output.read();
    this.#output = new OutputCapture(this.#outputLimitBytes);
    return output;
  }

  async screen(): Promise<readonly string[]> {
    return (await this.view()).screen;
  }

  async view(): Promise<TerminalView> {
    // Everything received before this call is on the screen when an empty write has passed through.
    await new Promise<void>(resolve => this.#screen.write("", resolve));
    const { active, normal } = this.#buffer;
    return {
      // The alternate screen of editors and pagers has no history: what scrolled out before is still there.
      history: readLines(normal, 0, normal.baseY),
      screen: readLines(active, active.baseY, active.baseY + this.#screen.rows),
      applicationCursorKeys: this.#screen.modes.applicationCursorKeysMode,
    };
  }

  async resize(columns: number, rows: number): Promise<void> {
    this.#screen.resize(columns, rows);
    if (this.#isOpen()) this.#pty.resize(columns, rows);
  }

  /** Ends the shell without a hang-up. What it has printed can still be read. */
  async kill(): Promise<void> {
    await this.#end(["SIGKILL"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end(["SIGHUP", "SIGKILL"]);
    this.#screen.dispose();
  }

  async #end(signals: readonly ("SIGHUP" | "SIGKILL")[]): Promise<void> {
    for (const signal of signals) {
      if (this.#isClosed) break;
      this.#signal(this.#pty.pid, signal);
      await Promise.race([this.closed, sleep(HANG_UP_WAIT_MS)]);
    }
    if (!this.#isClosed) this.#pty._socket.destroy();
    await this.closed;
  }

  /** The stream closes its descriptor before anybody is told, and the number may belong to another file at once. */
  #isOpen(): boolean {
    return !this.#isClosed && !this.#pty._socket.destroyed;
  }

  /** node-pty's own write waits for the program with the whole process: it loops until the pty takes everything. */
  async #send(bytes: Uint8Array): Promise<number> {
    let sent = 0;
    let since = performance.now();
    while (sent < bytes.length && this.#isOpen()) {
      const taken = writeSome(this.#pty.fd, bytes.subarray(sent, sent + SEND_CHUNK_BYTES));
      if (taken > 0) {
        sent += taken;
        since = performance.now();
      } else {
        if (performance.now() - since > this.#sendWaitMs) break;
        await sleep(SEND_RETRY_MS);
      }
    }
    return sent;
  }

  #receive(chunk: Buffer): void {
    this.#output.push(chunk);
    this.#backlogBytes += chunk.length;
    if (this.#backlogBytes > SCREEN_BACKLOG_BYTES) this.#pty.pause();
    this.#screen.write(chunk, () => {
      const wasBehind = this.#backlogBytes > SCREEN_BACKLOG_BYTES;
      this.#backlogBytes -= chunk.length;
      if (wasBehind && this.#backlogBytes <= SCREEN_BACKLOG_BYTES) this.#pty.resume();
    });
  }
}

/** Lines [start, end) of a screen buffer, trailing blanks cut. */
function readLines(buffer: ScreenBuffer, start: number, end: number): string[] {
  return Array.from(
    { length: end - start },
    (_, row) =>
      buffer
        .getLine(start + row)
        ?.translateToString()
        .replace(/ +$/, "") ?? "",
  );
}

/** @returns 0 when the terminal takes nothing now */
function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    // EIO: the other side is closed, which the next look at the stream tells.
    if (hasCode(error, "EAGAIN", "EIO")) return 0;
    throw error;
  }
}

function hasInternals(pty: IPty): pty is IPty & PtyInternals {
  return "fd" in pty && typeof pty.fd === "number" && "_socket" in pty && "ptsName" in pty;
}
