// Runs one command in a process group of its own and takes its output until the command itself has ended: what it
// leaves running in the background may hold its pipes open for ever.
import { once } from "node:events";
import { closeSync } from "node:fs";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { ExecResult } from "../sandbox.ts";
import { feedInput, OutputReader } from "./command-streams.ts";
import { endCommand } from "./end-command.ts";
import type { Host } from "./host.ts";
import { type HostProcess, startHostProcess } from "./host-process.ts";
import type { CommandPipes, NamedPipes, PipeEnds } from "./named-pipes.ts";

/** What a command wrote before its end lies in the pipe and arrives within a turn of the event loop. */
const QUIET_MS = 5;
/** Longest wait for a background process that goes on printing. */
const DRAIN_MS = 100;

export interface CommandRun {
  readonly stdin?: Uint8Array | undefined;
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onStdout: (chunk: Uint8Array) => void;
  readonly onStderr: (chunk: Uint8Array) => void;
}

export interface CommandHost {
  readonly host: Host;
  readonly pipes: NamedPipes;
}

/**
 * @param argv words of enter.ts
 * @throws the signal's reason, when it aborts and the group has ended; Failure SandboxUnavailable when this machine has
 * no process or descriptor left
 */
export async function runCommand(
  argv: readonly string[],
  { stdin, limitMs, signal, onStdout, onStderr }: CommandRun,
  { host, pipes }: CommandHost,
): Promise<Pick<ExecResult, "end" | "durationMs">> {
  signal?.throwIfAborted();
  const startedAt = performance.now();
  const { ours, theirs } = await pipes.open({ input: stdin !== undefined });
  const child = await start(argv, { ours, theirs }, host);
  const ended = once(child, "exit") as Promise<[number | null, string | null]>;
  const stopInput = ours.input === undefined ? undefined : feedInput(ours.input, stdin ?? new Uint8Array(0));
  const readers = [new OutputReader(ours.output, onStdout), new OutputReader(ours.errors, onStderr)];

  const cut = await waitForEnd(child, limitMs, signal);
  if (cut !== undefined) await endCommand(child);
  const [exitCode, signalName] = await ended;
  await Promise.race([Promise.all(readers.map(reader => reader.ended)), untilQuiet(readers)]);
  for (const reader of readers) reader.letGo();
  stopInput?.();

  const durationMs = performance.now() - startedAt;
  if (cut === "aborted") throw signal?.reason;
  if (cut === "timed-out") return { end: { kind: "timed-out", limitMs }, durationMs };
  // Node has no name for real-time signals: their name is empty.
  return exitCode === null
    ? { end: { kind: "signalled", signal: signalName || "SIGRT" }, durationMs }
    : { end: { kind: "exited", exitCode }, durationMs };
}

async function start(
  argv: readonly string[],
  { ours, theirs }: CommandPipes,
  host: Host,
): Promise<HostProcess> {
  try {
    const stdio = [theirs.input ?? "ignore", theirs.output, theirs.errors] as const;
    return await startHostProcess(argv, { host, stdio: [...stdio], group: true });
  } catch (error) {
    closeEnds(ours);
    throw error;
  } finally {
    closeEnds(theirs);
  }
}

function closeEnds({ input, output, errors }: PipeEnds): void {
  if (input !== undefined) closeSync(input);
  closeSync(output);
  closeSync(errors);
}

/** @returns undefined when the command ended by itself */
function waitForEnd(
  child: HostProcess,
  limitMs: number,
  signal: AbortSignal | undefined,
): Promise<"timed-out" | "aborted" | undefined> {
  return new Promise(resolve => {
    const settle = (cut?: "timed-out" | "aborted"): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      resolve(cut);
    };
    const onAbort = (): void => settle("aborted");
    const timer = setTimeout(() => settle("timed-out"), limitMs);
    signal?.addEventListener("abort", onAbort);
    child.once("exit", () => settle());
    if (signal?.aborted) onAbort();
  });
}

/** Resolves when a whole turn of the event loop brought nothing more, or after `DRAIN_MS`. */
async function untilQuiet(readers: readonly OutputReader[]): Promise<void> {
  const until = performance.now() + DRAIN_MS;
  let seen = -1;
  for (;;) {
    const total = readers.reduce((sum, reader) => sum + reader.byteCount, 0);
    if (total === seen || performance.now() > until) return;
    seen = total;
    await sleep(QUIET_MS);
    await setImmediate();
  }
}
