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
  /** When not given, for as long as the sandbox lives: this process does not stay alive for it. */
  readonly limitMs?: number | undefined;
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
export function runCommand(
  command: Command,
  run: CommandRun,
  entrance: Entrance,
): Promise<Pick<ExecResult, "end" | "durationMs">> {
  const running = runToEnd(command, run, entrance);
  return run.limitMs === undefined ? running : entrance.spawner.awaited(running);
}

async function runToEnd(
  command: Command,
  { stdin, limitMs, signal, onStdout, onStderr, pace }: CommandRun,
  { spawner, porter }: Entrance,
): ReturnType<typeof runCommand> {
  signal?.throwIfAborted();
  const pipes = await spawner.pipes.open({ input: stdin !== undefined });
  const started = porter.start(command, pipes);
  const stopInput =
    pipes.input === undefined ? undefined : feedInput(pipes.input, stdin ?? new Uint8Array(0));
  const readers = [
    new OutputReader(pipes.output, onStdout, pace),
    new OutputReader(pipes.errors, onStderr, pace),
  ];
  let cut: Cut | undefined;
  let end: CommandEnd;
  try {
    cut = await waitForEnd(started.ended, limitMs, signal);
    if (cut !== undefined) await endCommand(started);
    end = await started.ended;
  } finally {
    for (const reader of readers) reader.finish();
    stopInput?.();
  }
  if (cut?.kind === "aborted") throw signal?.reason;
  return { end: cut ?? endOf(end.status), durationMs: end.durationMs };
}

type Cut = { readonly kind: "aborted" } | Extract<ExecResult["end"], { readonly kind: "timed-out" }>;

/** @returns undefined when the command ended by itself */
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
      // When this process was busy its timers come first, and what ended in time is still to be heard.
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
