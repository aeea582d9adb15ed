// The commands of a daemon, each under the id of its request: started once, however often they are asked for, and looked
// at from any connection.
import { setTimeout as sleep } from "node:timers/promises";
import { hasProcess } from "../sandbox/processes.ts";
import type { CapturedOutput } from "../sandbox/sandbox.ts";
import { sizesOf } from "./captured-sizes.ts";
import type { Answer, RequestOf, ResponseOf, StreamPart } from "./protocol.ts";
import type { Reaper } from "./reaper.ts";
import { type RunningCommand, startCommand } from "./running-command.ts";
import { findUser, withHome } from "./users.ts";

const LOOK_MS = 10;
/** Output kept for all commands that may be asked for again; it comes out of the sandbox's memory. */
const KEPT_OUTPUT_BYTES = 32 << 20;

interface Requested {
  readonly words: string;
  readonly command: RunningCommand;
  readonly isKept: boolean;
}

export class Commands {
  readonly #reaper: Reaper;
  readonly #requests = new Map<string, Requested>();

  constructor(reaper: Reaper) {
    this.#reaper = reaper;
  }

  /** A driver has the result of this request, unless the caller may ask for it again. */
  forget(requestId: string): void {
    if (this.#requests.get(requestId)?.isKept === false) this.#requests.delete(requestId);
  }

  list(): Answer<"status">["requests"] {
    return [...this.#requests].map(([requestId, { command }]) => ({
      requestId,
      hasEnded: command.hasEnded(),
    }));
  }

  async run(asked: RequestOf<"exec">, stdin: Uint8Array): Promise<ResponseOf<"exec">> {
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

  async attach({
    requestId,
    stdoutOffset,
    stderrOffset,
    waitMs,
  }: RequestOf<"attach">): Promise<ResponseOf<"attach">> {
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

  async awaitProcess({
    requestId,
    argv,
    limitMs,
  }: RequestOf<"await-process">): Promise<"seen" | "ended" | "late"> {
    const command = this.find(requestId);
    for (const until = performance.now() + limitMs; performance.now() < until; await sleep(LOOK_MS)) {
      if (command.hasEnded()) return "ended";
      if (hasProcess(argv)) return "seen";
    }
    return "late";
  }

  /** @throws when there is none */
  find(requestId: string): RunningCommand {
    const requested = this.#requests.get(requestId);
    if (requested === undefined) throw new Error(`no such request: ${requestId}`);
    return requested.command;
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
}

/** Fails as a command does, because who is in the sandbox's accounts is the agent's doing. */
function noSuchUser(name: string, outputLimitBytes: number, reaper: Reaper): RunningCommand {
  const cwd = `/no such user: ${name}`;
  const start = { argv: [""], env: {}, cwd, user: undefined, stdin: new Uint8Array(0), limitMs: undefined };
  return startCommand({ ...start, outputLimitBytes }, reaper);
}

/** The kept bytes of a stream from an offset on. */
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
