// Runs one process that was started in a sandbox, in a process group of its own, and takes its output until the process
// itself has ended: whatever it leaves running in the background may hold its pipes open for ever. Drivers use this for
// commands that an entry process starts (bubblewrap), the daemon for those that it starts itself.
import { closeSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { hasCode } from "../files/file-errors.ts";
import { isDoneWithin } from "./done-within.ts";
import type { OutputPace } from "./output-pace.ts";
import { OutputReader } from "./output-reader.ts";
import { endTracer, sendSignal } from "./processes.ts";
import type { ExecResult } from "./sandbox.ts";

/** From TERM to KILL: enough for a program to write its files, too little to matter in an episode. */
const TERM_WAIT_MS = 500;
/** From KILL until we give up: only a process inside a hanging system call lives that long. */
const KILL_WAIT_MS = 5_000;

/** Our ends of a process's pipes; none of them blocks. */
export interface ProcessPipes {
  readonly output: number;
  readonly errors: number;
  /** The end to write to, and one that keeps what is written until the process has opened its own. */
  readonly input: { readonly write: number; readonly keep?: number } | undefined;
}

export interface ProcessEnd {
  readonly end: Exclude<ExecResult["end"], { readonly kind: "timed-out" }>;
  readonly durationMs: number;
}

export interface StartedProcess {
  /** Rejects when the sandbox ends first, or when no process could be made. */
  readonly ended: Promise<ProcessEnd>;
  /** Its number for us, from its start or its end; undefined when it has neither. */
  pid(): Promise<number | undefined>;
  readonly pipes: ProcessPipes;
}

export interface ProcessRun {
  readonly stdin?: Uint8Array | undefined;
  /** No limit when not given. */
  readonly limitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** They must copy what they keep. */
  readonly onStdout: (chunk: Uint8Array) => void;
  readonly onStderr: (chunk: Uint8Array) => void;
  /** At which its output is read; as fast as it comes when not given. */
  readonly pace?: OutputPace | undefined;
}

export interface ProcessResult extends Pick<ExecResult, "end" | "durationMs"> {
  /** The signal aborted before the process ended by itself. */
  readonly isAborted: boolean;
}

/** @throws what `ended` rejects with */
export async function runProcess(
  { ended, pid, pipes }: StartedProcess,
  { stdin = new Uint8Array(0), limitMs, signal, onStdout, onStderr, pace }: ProcessRun,
): Promise<ProcessResult> {
  const stopInput = pipes.input === undefined ? undefined : feedInput(pipes.input, stdin);
  const readers = [
    new OutputReader(pipes.output, onStdout, pace),
    new OutputReader(pipes.errors, onStderr, pace),
  ];
  try {
    const cut = await waitForEnd(ended, limitMs, signal);
    if (cut !== undefined) await endGroup({ ended, pid });
    const { end, durationMs } = await ended;
    return { end: cut?.kind === "timed-out" ? cut : end, durationMs, isAborted: cut?.kind === "aborted" };
  } finally {
    for (const reader of readers) reader.finish();
    stopInput?.();
  }
}

type Cut = { readonly kind: "aborted" } | Extract<ExecResult["end"], { readonly kind: "timed-out" }>;

/** @returns undefined when the process ended by itself */
function waitForEnd(
  ended: Promise<unknown>,
  limitMs: number | undefined,
  signal: AbortSignal | undefined,
): Promise<Cut | undefined> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    const onAbort = (): void => {
      stop();
      resolve({ kind: "aborted" });
    };
    const onLimit = (passedMs: number): void => {
      // After we were busy, timers run before events: the end of a process that ended in time may still be unread.
      setImmediate(() => {
        stop();
        resolve({ kind: "timed-out", limitMs: passedMs });
      });
    };
    const timer = limitMs === undefined ? undefined : setTimeout(onLimit, limitMs, limitMs);
    signal?.addEventListener("abort", onAbort);
    ended.then(() => resolve(undefined), reject).finally(stop);
    if (signal?.aborted) onAbort();
  });
}

/** Ends a process before its time, with all of its group: politely at first, then not. */
async function endGroup({ ended, pid }: Pick<StartedProcess, "ended" | "pid">): Promise<void> {
  const leader = await pid();
  if (leader === undefined) return;
  let hasEnded = false;
  const noted = ended.finally(() => {
    hasEnded = true;
  });
  // A process that has just started does not lead its group yet, and one that has ended may have left its number to another.
  const signalAll = (signal: NodeJS.Signals | 0): boolean =>
    [sendSignal(-leader, signal), !hasEnded && sendSignal(leader, signal)].includes(true);
  const isOver = (): boolean => hasEnded && !signalAll(0);
  const end = async (): Promise<void> => {
    signalAll("SIGTERM");
    if (await isDoneWithin(isOver, TERM_WAIT_MS)) return;
    signalAll("SIGKILL");
    const isOverUntraced = (): boolean => {
      if (isOver()) return true;
      if (!hasEnded) endTracer(leader);
      return false;
    };
    await isDoneWithin(isOverUntraced, KILL_WAIT_MS);
  };
  await Promise.all([end(), noted]);
}

/**
 * Writes all bytes and closes. A process that does not read them all is no error.
 *
 * @returns ends it
 */
function feedInput({ write, keep }: NonNullable<ProcessPipes["input"]>, bytes: Uint8Array): () => void {
  const closeKept = (): void => {
    if (keep !== undefined) closeSync(keep);
  };
  const written = bytes.length === 0 ? 0 : writeUnlessEnded(write, bytes);
  if (written === bytes.length) {
    closeSync(write);
    return closeKept;
  }
  const socket = new Socket({ fd: write, readable: false, writable: true });
  socket.on("error", () => socket.destroy());
  socket.end(bytes.subarray(written));
  return () => {
    socket.destroy();
    closeKept();
  };
}

/** As `writeSome`; when nobody reads any more, all of it counts as written. */
function writeUnlessEnded(fd: number, bytes: Uint8Array): number {
  try {
    return writeSome(fd, bytes);
  } catch (error) {
    if (hasCode(error, "EPIPE")) return bytes.length;
    throw error;
  }
}

/** Writes to a pipe that does not block. @returns 0 when it is full */
export function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    if (hasCode(error, "EAGAIN")) return 0;
    throw error;
  }
}
