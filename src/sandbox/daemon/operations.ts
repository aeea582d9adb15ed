// What a driver can ask of the daemon.
import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PseudoTerminal } from "../pseudo-terminal.ts";
import type { CapturedOutput } from "../sandbox.ts";
import { Baseline } from "./baseline.ts";
import { describe, listRoot } from "./describe.ts";
import { emptyFolder, makeFolder, Refusal, removeEntry } from "./folders.ts";
import { closeOnExec, limitFileSize } from "./kernel.ts";
import { killEverything } from "./kill-everything.ts";
import { withCommandScore } from "./oom-score.ts";
import { Packing } from "./pack.ts";
import { hasProcess } from "./processes.ts";
import { type Answer, type CapturedSizes, type Operation, PIECE_BYTES, type StreamPart } from "./protocol.ts";
import { Reaper } from "./reaper.ts";
import { type RunningCommand, startCommand } from "./running-command.ts";
import { Unpacking } from "./unpack.ts";
import { type CommandUser, findUser } from "./users.ts";

/** Longest time that a timer of Node can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const LOOK_MS = 10;
/** Of commands that may be asked for again, together; it comes out of the sandbox's memory. */
const KEPT_OUTPUT_BYTES = 32 << 20;

export interface Answered<Op extends Operation["op"] = Operation["op"]> {
  readonly value: Answer<Op>;
  readonly body?: Uint8Array;
}

type Asked<Op extends Operation["op"]> = Extract<Operation, { op: Op }>;

interface Requested {
  readonly words: string;
  readonly command: RunningCommand;
  readonly isKept: boolean;
}

export class Operations {
  readonly #reaper = new Reaper();
  readonly #requests = new Map<string, Requested>();
  readonly #terminals = new Map<string, PseudoTerminal>();
  readonly #uploads = new Map<string, Unpacking>();
  readonly #downloads = new Map<string, Download>();
  readonly #end: () => void;
  #deadline: NodeJS.Timeout | undefined;
  #baseline: Baseline | undefined;
  #notes: Uint8Array | undefined;

  /** @param end ends the daemon and with it the sandbox */
  constructor(end: () => void) {
    this.#end = end;
    this.#reaper.start();
  }

  /** A driver has the result of this request, unless the caller may ask for it again. */
  forget(requestId: string): void {
    if (this.#requests.get(requestId)?.isKept === false) this.#requests.delete(requestId);
  }

  async perform(asked: Operation, body: Uint8Array): Promise<Answered> {
    switch (asked.op) {
      case "open":
        return this.#open(asked);
      case "mark":
        this.#baseline ??= new Baseline();
        return { value: {} };
      case "note":
        this.#notes = body;
        return { value: {} };
      case "recall":
        return { value: { isNoted: this.#notes !== undefined }, body: this.#notes };
      case "changes":
        if (this.#baseline === undefined) throw new Error("changes since no mark");
        return { value: {}, body: Buffer.from(JSON.stringify(this.#baseline.changes())) };
      case "exec":
        return this.#exec(asked, body);
      case "attach":
        return this.#attach(asked);
      case "signal":
        return { value: { reached: this.#command(asked.requestId).signal(signalOf(asked.signal)) } };
      case "cancel":
        this.#command(asked.requestId).cancel();
        return { value: {} };
      case "await-process":
        return { value: { state: await this.#awaitProcess(asked) } };
      case "terminal-open":
        return { value: this.#openTerminal(asked) };
      case "terminal-send":
        return { value: { taken: await this.#terminal(asked.terminal).send(body) } };
      case "terminal-read":
        return captured(await this.#terminal(asked.terminal).readNew());
      case "terminal-view": {
        const { history, screen, applicationCursorKeys } = await this.#terminal(asked.terminal).view();
        return { value: { history: [...history], screen: [...screen], applicationCursorKeys } };
      }
      case "terminal-resize":
        await this.#terminal(asked.terminal).resize(asked.columns, asked.rows);
        return { value: {} };
      case "terminal-closed":
        await this.#terminal(asked.terminal).closed;
        return { value: {} };
      case "terminal-close":
        await this.#terminals.get(asked.terminal)?.[Symbol.asyncDispose]();
        this.#terminals.delete(asked.terminal);
        return { value: {} };
      case "upload":
        return { value: await this.#upload(asked, body) };
      case "upload-more":
        return { value: await this.#uploadMore(asked, body) };
      case "download":
        return this.#download(asked);
      case "download-more":
        return this.#downloadMore(asked.transfer);
      case "download-stop":
        this.#downloads.get(asked.transfer)?.packing.stop();
        this.#downloads.delete(asked.transfer);
        return { value: {} };
      case "describe":
        return { value: { entries: asked.paths.map(describe) } };
      case "list":
        return { value: {}, body: Buffer.from(JSON.stringify(listRoot())) };
      case "kill-agents":
        return { value: { isEmpty: await killEverything(() => this.#reaper.reapOrphans()) } };
      case "status":
        return { value: this.#status() };
      case "shutdown":
        setImmediate(this.#end); // the answer goes first
        return { value: {} };
      default:
        return asked satisfies never;
    }
  }

  #open({ deadlineMs, made, fileLimitBytes }: Asked<"open">): Answered<"open"> {
    this.#awaitDeadline(deadlineMs);
    if (fileLimitBytes !== undefined) limitFileSize(fileLimitBytes);
    return { value: refusable(() => made.forEach(makeFolder)) };
  }

  /** Whatever becomes of the driver, nothing here outlives the lease. */
  #awaitDeadline(deadlineMs: number): void {
    clearTimeout(this.#deadline);
    const leftMs = deadlineMs - Date.now();
    this.#deadline = setTimeout(
      () => (leftMs > LONGEST_TIMER_MS ? this.#awaitDeadline(deadlineMs) : this.#end()),
      Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
    );
  }

  async #exec(asked: Asked<"exec">, stdin: Uint8Array): Promise<Answered<"exec">> {
    const { requestId, argv, env, cwd, limitMs, outputLimitBytes, isKept } = asked;
    const words = JSON.stringify(argv);
    const earlier = this.#requests.get(requestId);
    if (earlier !== undefined && earlier.words !== words)
      throw new Error(`a request id belongs to one command: ${requestId}`);
    const user = asked.user === undefined ? undefined : findUser(asked.user);
    const requested = earlier ?? {
      ...{ words, isKept },
      command:
        asked.user !== undefined && user === undefined
          ? noSuchUser(asked.user, outputLimitBytes, this.#reaper)
          : startCommand(
              { argv, cwd, user, stdin, limitMs, outputLimitBytes, env: withHome(env, user) },
              this.#reaper,
            ),
    };
    this.#requests.set(requestId, requested);
    const { end, durationMs } = await requested.command.ended;
    if (isKept) this.#boundKeptOutput(requestId);
    const [stdout, stderr] = [requested.command.stdout.read(), requested.command.stderr.read()];
    return {
      value: { end, durationMs, stdout: sizesOf(stdout), stderr: sizesOf(stderr) },
      body: Buffer.concat([stdout.head, stdout.tail, stderr.head, stderr.tail]),
    };
  }

  /** A command never runs twice, however long ago it was; what it printed is let go some day, the oldest first. */
  #boundKeptOutput(newest: string): void {
    const finished = [...this.#requests].filter(([id, { command }]) => id !== newest && command.hasEnded());
    const sizes = finished.map(([, { command }]) => command.stdout.keptBytes + command.stderr.keptBytes);
    let left = sizes.reduce((sum, size) => sum + size, 0);
    for (const [index, [, { command }]] of finished.entries()) {
      if (left <= KEPT_OUTPUT_BYTES) return;
      left -= sizes[index] ?? 0;
      command.stdout.drop();
      command.stderr.drop();
    }
  }

  async #attach({
    requestId,
    stdoutOffset,
    stderrOffset,
    waitMs,
  }: Asked<"attach">): Promise<Answered<"attach">> {
    const command = this.#requests.get(requestId)?.command;
    if (command === undefined) return { value: { unknown: true } };
    const late = new AbortController();
    await Promise.race([
      command.ended,
      sleep(waitMs, undefined, { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    const end = command.hasEnded() ? await command.ended : undefined;
    const [out, err] = [
      partOf(command.stdout.read(), stdoutOffset),
      partOf(command.stderr.read(), stderrOffset),
    ];
    return {
      value: { stdout: out.part, stderr: err.part, ...(end ?? {}) },
      body: Buffer.concat([out.bytes, err.bytes]),
    };
  }

  async #awaitProcess({
    requestId,
    argv,
    limitMs,
  }: Asked<"await-process">): Promise<"seen" | "ended" | "late"> {
    const command = this.#command(requestId);
    for (const until = performance.now() + limitMs; performance.now() < until; await sleep(LOOK_MS)) {
      if (command.hasEnded()) return "ended";
      if (hasProcess(argv)) return "seen";
    }
    return "late";
  }

  #openTerminal(asked: Asked<"terminal-open">): Answer<"terminal-open"> {
    if (this.#terminals.has(asked.terminal)) return {};
    const user = asked.user === undefined ? undefined : findUser(asked.user);
    if (asked.user !== undefined && user === undefined) return { refused: `there is no user ${asked.user}` };
    return refusable(() => {
      const terminal = withCommandScore(
        () =>
          new PseudoTerminal(asked.argv, asked, {
            env: withHome(asked.env, user),
            cwd: asked.cwd,
            owner: user,
            isRunByOwner: user !== undefined,
            onOpen: closeOnExec,
            signal: signalTerminal,
          }),
      );
      const disown = this.#reaper.own(terminal.pid);
      void terminal.closed.then(disown);
      this.#terminals.set(asked.terminal, terminal);
    });
  }

  async #upload(asked: Asked<"upload">, body: Uint8Array): Promise<Answer<"upload">> {
    const { transfer, folder, emptied, removed, only, keepOwners, isLast } = asked;
    const prepared = refusable(() => {
      emptied.forEach(emptyFolder);
      removed.forEach(removeEntry);
      makeFolder(folder);
    });
    if (prepared.refused !== undefined) return prepared;
    this.#uploads.set(transfer, new Unpacking(folder, { keepOwners, only }));
    return this.#uploadMore({ op: "upload-more", transfer, isLast }, body);
  }

  async #uploadMore(
    { transfer, isLast }: Asked<"upload-more">,
    body: Uint8Array,
  ): Promise<Answer<"upload-more">> {
    const unpacking = this.#uploads.get(transfer);
    if (unpacking === undefined) throw new Error(`no such upload: ${transfer}`);
    await unpacking.write(body);
    if (!isLast) return {};
    this.#uploads.delete(transfer);
    try {
      await unpacking.end();
      return {};
    } catch (error) {
      return refusalOf(error);
    }
  }

  async #download({ transfer, folder, paths, limitBytes }: Asked<"download">): Promise<Answered> {
    const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
    if (!isFolder) return { value: { state: "missing" } };
    this.#downloads.set(transfer, { packing: new Packing(folder, { paths }), leftBytes: limitBytes });
    return this.#downloadMore(transfer);
  }

  async #downloadMore(transfer: string): Promise<Answered<"download-more">> {
    const download = this.#downloads.get(transfer);
    if (download === undefined) throw new Error(`no such download: ${transfer}`);
    try {
      const body = await download.packing.read(PIECE_BYTES);
      if (body === undefined) {
        this.#downloads.delete(transfer);
        return { value: { state: "done" } };
      }
      download.leftBytes -= body.length;
      if (download.leftBytes >= 0) return { value: { state: "more" }, body };
      download.packing.stop();
      this.#downloads.delete(transfer);
      return { value: { state: "oversized" } };
    } catch (error) {
      this.#downloads.delete(transfer);
      return { value: { state: "refused", ...refusalOf(error) } };
    }
  }

  #status(): Answer<"status"> {
    return {
      pid: process.pid,
      requests: [...this.#requests].map(([requestId, { command }]) => ({
        requestId,
        hasEnded: command.hasEnded(),
      })),
      rssBytes: process.memoryUsage.rss(),
    };
  }

  #command(requestId: string): RunningCommand {
    const requested = this.#requests.get(requestId);
    if (requested === undefined) throw new Error(`no such request: ${requestId}`);
    return requested.command;
  }

  #terminal(name: string): PseudoTerminal {
    const terminal = this.#terminals.get(name);
    if (terminal === undefined) throw new Error(`no such terminal: ${name}`);
    return terminal;
  }
}

interface Download {
  readonly packing: Packing;
  leftBytes: number;
}

/** As Docker has it: where the account lives, unless image or caller say otherwise. */
function withHome(
  env: Readonly<Record<string, string>>,
  user: CommandUser | undefined,
): Readonly<Record<string, string>> {
  return { HOME: user?.home ?? "/root", ...env };
}

/** Fails as a command does, because who is in the sandbox's accounts is the agent's doing. */
function noSuchUser(name: string, outputLimitBytes: number, reaper: Reaper): RunningCommand {
  const cwd = `/no such user: ${name}`;
  const start = { argv: [""], env: {}, cwd, user: undefined, stdin: new Uint8Array(0), limitMs: undefined };
  return startCommand({ ...start, outputLimitBytes }, reaper);
}

function signalOf(name: string): NodeJS.Signals {
  return name as NodeJS.Signals; // kill(2) refuses what is none
}

/** The shell leads a session, and its group. */
function signalTerminal(pid: number, signal: "SIGHUP" | "SIGKILL"): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, signal);
    } catch {
      // it has ended
    }
  }
}

function refusable(action: () => void): { refused?: string } {
  try {
    action();
    return {};
  } catch (error) {
    return refusalOf(error);
  }
}

function refusalOf(error: unknown): { refused: string } {
  if (error instanceof Refusal) return { refused: error.message };
  if (error instanceof Error && "code" in error) return { refused: error.message };
  throw error;
}

function captured(output: CapturedOutput): Answered<"terminal-read"> {
  return { value: sizesOf(output), body: Buffer.concat([output.head, output.tail]) };
}

function sizesOf({ head, tail, omittedBytes }: CapturedOutput): CapturedSizes {
  return { headBytes: head.length, tailBytes: tail.length, omittedBytes };
}

/** What is kept from an offset of the stream on. */
function partOf(
  { head, tail, omittedBytes }: CapturedOutput,
  offset: number,
): { readonly part: StreamPart; readonly bytes: Uint8Array } {
  const tailAt = head.length + omittedBytes;
  const bytes = Buffer.concat([head.subarray(offset), tail.subarray(Math.max(0, offset - tailAt))]);
  const omitted = Math.max(0, tailAt - Math.max(offset, head.length));
  const nextOffset = Math.max(offset, tailAt + tail.length);
  return { part: { omittedBytes: omitted, bytes: bytes.length, nextOffset }, bytes };
}
