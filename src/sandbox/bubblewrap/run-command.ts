// Runs one command in a process group of its own and takes its output until the command itself has ended: what it
// leaves running in the background may hold its pipes open for ever.
import { constants } from "node:os";
import type { OutputPace } from "../output-pace.ts";
import { OutputReader } from "../output-reader.ts";
import type { ExecResult } from "../sandbox.ts";
import { endCommand } from "./end-command.ts";
import { feedInput } from "./feed-input.ts";
import type { Command, CommandEnd, Porter } from "./porter.ts";
import type { Spawner } from "./spawner.ts";

export interface CommandRun {
  readonly stdin?: Uint8Array | undefined;
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** They must copy what they keep. */
  readonly onStdout: (chunk: Uint8Array) => void;
  readonly onStderr: (chunk: Uint8Array) => void;
  /** Of its output; as fast as it comes when not given. */
  readonly pace?: OutputPace;
}

/** A sandbox as commands see it. */
export interface Entrance {
  readonly spawner: Spawner;
  readonly porter: Porter;
}

/**
 * @throws the signal's reason, when it aborts and the group has ended; Failure SandboxLost when the sandbox ends before
 * the command; Failure SandboxUnavailable when this machine has no process or descriptor left
 */
export async function runCommand(
  command: Command,
  { stdin, limitMs, signal, onStdout, onStderr, pace }: CommandRun,
  { spawner, porter }: Entrance,
): Promise<Pick<ExecResult, "end" | "durationMs">> {
  signal?.throwIfAborted();
  const pipes = await spawner.pipes.open({ input: stdin !== undefined });
  const started = porter.start(command, pipes);
  const stopInput =
    pipes.input === undefined ? undefined : feedInput(pipes.input, stdin ?? new Uint8Array(0));
  const readers = [
    new OutputReader(pipes.output, onStdout, pace),
    new OutputReader(pipes.errors, onStderr, pace),
  ];
  let cut: "timed-out" | "aborted" | undefined;
  let end: CommandEnd;
  try {
    cut = await waitForEnd(started.ended, limitMs, signal);
    if (cut !== undefined) await endCommand(started);
    end = await started.ended;
  } finally {
    for (const reader of readers) reader.finish();
    stopInput?.();
  }
  if (cut === "aborted") throw signal?.reason;
  const { status, durationMs } = end;
  return { end: cut === "timed-out" ? { kind: "timed-out", limitMs } : endOf(status), durationMs };
}

/** @returns undefined when the command ended by itself */
function waitForEnd(
  ended: Promise<unknown>,
  limitMs: number,
  signal: AbortSignal | undefined,
): Promise<"timed-out" | "aborted" | undefined> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    const onAbort = (): void => {
      stop();
      resolve("aborted");
    };
    const timer = setTimeout(() => {
      // When this process was busy its timers come first, and what ended in time is still to be heard.
      setImmediate(() => {
        stop();
        resolve("timed-out");
      });
    }, limitMs);
    signal?.addEventListener("abort", onAbort);
    ended.then(() => resolve(undefined), reject).finally(stop);
    if (signal?.aborted) onAbort();
  });
}

/** The first name of each number: SIGABRT, not SIGIOT. */
const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** @param status as of waitpid(2) */
function endOf(status: number): ExecResult["end"] {
  const number = status & 127;
  if (number === 0) return { kind: "exited", exitCode: status >> 8 };
  // Real-time signals have numbers only.
  return { kind: "signalled", signal: SIGNAL_NAMES.get(number) ?? "SIGRT" };
}
