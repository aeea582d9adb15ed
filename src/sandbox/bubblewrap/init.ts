// Process 1 of a sandbox: bwrap itself, stopped right before it would run a program. It has mounted everything and now
// waits for a byte that never comes. Nothing inside can end it (a pid namespace protects its first process), children
// that lost their parents are reaped because it ignores SIGCHLD, and when this process dies, even by SIGKILL, the wait
// ends, bwrap finds no program to run and exits, and the kernel ends everything inside. Nothing can be left over.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Failure, InvariantError } from "../../failure/errors.ts";
import { hasCode } from "../../store/file-errors.ts";
import type { Host } from "./host.ts";
import { type HostProcess, runHostProcess, startHostProcess } from "./host-process.ts";
import { TOOLKIT_MOUNT } from "./toolkit.ts";

/** Descriptors of bwrap: its arguments (which would else be seen inside, as /proc/1/cmdline), what it tells, the wait. */
const ARGUMENTS_FD = 3;
const INFO_FD = 4;
const BLOCK_FD = 5;
/** The first descriptor for the content of files. */
const FIRST_FILE_FD = 6;

const START_PATIENCE_MS = 30_000;
const END_PATIENCE_MS = 10_000;
const POLL_MS = 1;
/** For what bwrap said before it gave up to arrive. */
const LAST_WORDS_MS = 20;

/**
 * bwrap writes more than these, and JSON over several lines.
 * Source: bwrap(1), --info-fd
 */
const Info = z.object({ "child-pid": z.int().positive() });

/** What bwrap is told: options, and the content of files in the order of their `--file` options. */
export interface BwrapArguments {
  readonly options: readonly string[];
  /** Descriptors of this process, open for reading. */
  readonly fileDescriptors: readonly number[];
}

/** Descriptor number that a `--file` option has to name. */
export function fileDescriptor(index: number): string {
  return `${FIRST_FILE_FD + index}`;
}

export class Init {
  readonly pid: number;
  /** Clock ticks after boot at which it started (proc_pid_stat(5), field 22): tells it from a later process of its number. */
  readonly started: string;
  readonly #outer: HostProcess;
  readonly #block: Writable;

  constructor(pid: number, started: string, outer: HostProcess, block: Writable) {
    this.pid = pid;
    this.started = started;
    this.#outer = outer;
    this.#block = block;
  }

  /** Not so from the moment on at which it begins to end, which is before it ends what is inside. */
  isAlive(): boolean {
    const stat = readStat(this.pid);
    return stat?.started === this.started && !stat.isExiting;
  }

  /** Ends everything inside and waits for it. May be called again. */
  async end(): Promise<void> {
    endProcess(this);
    this.#block.destroy();
    const until = performance.now() + END_PATIENCE_MS;
    while (startTime(this.pid) === this.started) {
      if (performance.now() > until) {
        throw new Failure("SandboxUnavailable", `sandbox process ${this.pid} does not end`, {
          retryable: false,
        });
      }
      await sleep(POLL_MS);
    }
    // Last, because until here it reaps process 1: this process may itself be one that reaps nobody.
    await endOuter(this.#outer);
  }
}

/** SIGKILL, but never to another process that has the number now. */
export function endProcess({ pid, started }: { readonly pid: number; readonly started: string }): void {
  if (startTime(pid) !== started) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}

/**
 * @param launcher words that run the words after them, bwrap's
 * @throws Failure SandboxUnavailable with what bwrap said
 */
export async function startInit(
  host: Host,
  launcher: readonly string[],
  { options, fileDescriptors }: BwrapArguments,
): Promise<Init> {
  const words = [
    ...[...launcher, host.tools.env, "--ignore-signal=CHLD", host.tools.bwrap],
    ...["--args", `${ARGUMENTS_FD}`, "--info-fd", `${INFO_FD}`, "--block-fd", `${BLOCK_FD}`, "/nonexistent"],
  ];
  // A group of its own: an interrupt from the keyboard is for the driver, which then ends its sandboxes in order.
  const outer = await startHostProcess(words, {
    host,
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe", "pipe", ...fileDescriptors],
    group: true,
  });
  const stderr = collect(readable(outer, 2));
  const info = collect(readable(outer, INFO_FD));
  const block = writable(outer, BLOCK_FD);
  block.on("error", () => undefined); // bwrap has ended: startTime tells
  writable(outer, ARGUMENTS_FD)
    .on("error", () => undefined)
    .end(options.map(option => `${option}\0`).join(""));
  try {
    const { pid, started } = await findInit(outer, info);
    await untilMapped(pid, started);
    await finish(host, pid);
    outer.unref();
    for (const stream of outer.stdio) if (stream instanceof Socket) stream.unref();
    return new Init(pid, started, outer, block);
  } catch (error) {
    await sleep(LAST_WORDS_MS);
    // What it says from here on is about the end that it is made to come to.
    const said = stderr.text().trim();
    block.destroy();
    await endOuter(outer);
    if (!(error instanceof NotStarted)) throw error;
    const detail = [error.message, said].filter(part => part !== "").join(": ");
    throw new Failure("SandboxUnavailable", detail, { retryable: true, cause: error });
  }
}

/** bwrap gave up, or is not ready in time. */
class NotStarted extends Error {}

async function findInit(
  outer: HostProcess,
  info: { readonly text: () => string },
): Promise<{ readonly pid: number; readonly started: string }> {
  const until = performance.now() + START_PATIENCE_MS;
  for (;;) {
    const text = info.text();
    if (text.includes("}")) {
      const pid = Info.parse(JSON.parse(text))["child-pid"];
      const started = startTime(pid);
      if (started === undefined) throw new NotStarted("bwrap ended while it was mounting");
      return { pid, started };
    }
    if (outer.exitCode !== null || outer.signalCode !== null) throw new NotStarted("bwrap ended at once");
    if (performance.now() > until) throw new NotStarted("bwrap did not start in time");
    await sleep(POLL_MS);
  }
}

/** Before the id map is written nobody in the user namespace is root, and the kernel refuses what comes next. */
async function untilMapped(pid: number, started: string): Promise<void> {
  const until = performance.now() + START_PATIENCE_MS;
  while (readMap(pid) === "") {
    if (startTime(pid) !== started) throw new NotStarted("bwrap ended while it was starting");
    if (performance.now() > until) throw new NotStarted("bwrap did not start in time");
    await sleep(POLL_MS);
  }
}

function readMap(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/uid_map`, "utf8");
  } catch {
    return ""; // ended: the caller looks
  }
}

/**
 * Forbids user namespaces inside, and waits for the finished root: the toolkit appears below the root of process 1 when
 * bwrap has changed to it.
 *
 * In a user namespace of its own a command would have every capability again, and with it most of the kernel to try.
 * The limit is per namespace, and only the powers that commands lack can raise it (namespaces(7), /proc/sys/user).
 * The look is taken from within the namespace, because a root in a container may not look into another user's process.
 */
const FINISH = `echo 0 >/proc/sys/user/max_user_namespaces || exit
looks=0
while [ ! -e "/proc/$1/root${TOOLKIT_MOUNT}/ld.so" ]; do
  [ -e "/proc/$1/stat" ] || exit
  looks=$((looks + 1))
  [ $looks -lt 500 ] || sleep 0.005
done`;

async function finish(host: Host, pid: number): Promise<void> {
  const { nsenter, sh } = host.tools;
  const enter = [nsenter, "--target", `${pid}`, "--user", "--preserve-credentials", "--"];
  const late = new AbortController();
  const finished = runHostProcess([...enter, sh, "-c", FINISH, "sh", `${pid}`], host);
  const result = await Promise.race([
    finished,
    sleep(START_PATIENCE_MS, undefined, { signal: late.signal, ref: false }).catch(() => undefined),
  ]);
  late.abort();
  if (result?.exitCode === 0) return;
  throw new NotStarted(result === undefined ? "bwrap was not ready in time" : result.stderr.trim());
}

async function endOuter(outer: HostProcess): Promise<void> {
  if (outer.exitCode !== null || outer.signalCode !== null) return;
  const ended = once(outer, "exit");
  outer.ref();
  outer.kill("SIGKILL");
  await ended;
}

/** @returns undefined when there is no such process, or only its remains */
export function startTime(pid: number): string | undefined {
  return readStat(pid)?.started;
}

/** Flag of a process that has begun to end (linux/sched.h, PF_EXITING). */
const EXITING = 0x4;

function readStat(pid: number): { readonly started: string; readonly isExiting: boolean } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The name in parentheses may hold anything; the state follows it as field 3, the flags are field 9.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, flags, started] = [fields[0], fields[6], fields[19]];
  if (started === undefined || state === "Z" || state === "X") return undefined;
  return { started, isExiting: (Number(flags) & EXITING) !== 0 };
}

function collect(stream: Readable): { readonly text: () => string } {
  const chunks: Buffer[] = [];
  stream.on("data", chunk => chunks.push(chunk));
  stream.on("error", () => undefined);
  return { text: () => Buffer.concat(chunks).toString() };
}

function readable(process: HostProcess, fd: number): Readable {
  const stream = process.stdio[fd];
  if (stream instanceof Readable) return stream;
  throw new InvariantError("a pipe to bwrap is missing", { fd });
}

function writable(process: HostProcess, fd: number): Writable {
  const stream = process.stdio[fd];
  if (stream instanceof Writable) return stream;
  throw new InvariantError("a pipe to bwrap is missing", { fd });
}
