// One command of the sandbox: a session and process group of its own, its output bounded, its time too. It is over when
// the command itself has ended, whatever it leaves running in the background.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, statSync } from "node:fs";
import { Socket } from "node:net";
import { hasCode } from "../files/file-errors.ts";
import { isDoneWithin } from "../sandbox/done-within.ts";
import { OutputCapture } from "../sandbox/output-capture.ts";
import { OutputReader } from "../sandbox/output-reader.ts";
import type { ExecResult } from "../sandbox/sandbox.ts";
import { doNotBlock, openPipe, type Pipe } from "./kernel.ts";
import { withCommandScore } from "./oom-score.ts";
import type { Reaper } from "./reaper.ts";
import type { CommandUser } from "./users.ts";

/** From TERM to KILL: enough for a program to write its files, too little to matter in an episode. */
const TERM_PATIENCE_MS = 500;
/** From KILL until it is given up: only a process inside a hanging system call lives that long. */
const KILL_PATIENCE_MS = 5_000;

/** As shells have it: a program that is not there, and one that cannot be run. */
const NOT_FOUND = 127;
const NOT_USABLE = 126;

export interface CommandStart {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Root when not given. */
  readonly user: CommandUser | undefined;
  readonly stdin: Uint8Array;
  /** None for what lives as long as the sandbox. */
  readonly limitMs: number | undefined;
  readonly outputLimitBytes: number;
}

type CommandEnd = Pick<ExecResult, "end" | "durationMs">;

export interface RunningCommand {
  readonly stdout: OutputCapture;
  readonly stderr: OutputCapture;
  /** Never rejects: that a command cannot be started is its result. */
  readonly ended: Promise<CommandEnd>;
  readonly hasEnded: () => boolean;
  /** To all of its process group. @returns whether any of it is there */
  readonly signal: (signal: NodeJS.Signals) => boolean;
  /** Ends it before its time, politely at first. */
  readonly cancel: () => void;
}

export function startCommand(start: CommandStart, reaper: Reaper): RunningCommand {
  const startedAt = performance.now();
  const stdout = new OutputCapture(start.outputLimitBytes);
  const stderr = new OutputCapture(start.outputLimitBytes);
  const cut = Promise.withResolvers<"timed-out" | "cancelled">();
  let child: ChildProcess | undefined;
  let isOver = false;
  const run = async (): Promise<ExecResult["end"]> => {
    try {
      if (!isFolder(start.cwd)) return refuse(stderr, NOT_USABLE, `cannot change to ${start.cwd}`);
      const started = startProcess(start, [stdout, stderr]);
      child = started.child;
      return await awaitEnd(started, cut, start.limitMs, reaper);
    } catch (error) {
      const [program = ""] = start.argv;
      const code = error instanceof Error && "code" in error ? `${error.code}` : `${error}`;
      return refuse(stderr, code === "ENOENT" ? NOT_FOUND : NOT_USABLE, `cannot run ${program}: ${code}`);
    }
  };
  const ended = run().then(end => {
    isOver = true;
    return { end, durationMs: performance.now() - startedAt };
  });
  return {
    ...{ stdout, stderr, ended, hasEnded: () => isOver },
    signal: signal => child?.pid !== undefined && signalGroup(child.pid, signal),
    cancel: () => cut.resolve("cancelled"),
  };
}

interface StartedProcess {
  readonly child: ChildProcess;
  /** Takes what the process has left in its pipes and lets go of them. */
  readonly finish: () => void;
}

/** Node starts a process before it returns, so that its score and its place among our own children are right. */
function startProcess(
  { argv, env, cwd, user, stdin }: CommandStart,
  captures: readonly [OutputCapture, OutputCapture],
): StartedProcess {
  const [program = "", ...args] = argv;
  const pipes: Pipe[] = [];
  try {
    for (let index = 0; index < 3; index++) pipes.push(openPipe());
    const [input, output, errors] = pipes as [Pipe, Pipe, Pipe];
    const options = {
      ...{ cwd, env: { ...env }, detached: true },
      stdio: [input.read, output.write, errors.write],
      ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
    };
    const child = withCommandScore(() => spawn(program, args, options));
    for (const fd of [input.read, output.write, errors.write]) closeSync(fd);
    const readers = [output, errors].map(({ read }, index) => {
      doNotBlock(read);
      return new OutputReader(read, chunk => captures[index]?.push(chunk));
    });
    const stopInput = feed(input.write, stdin);
    return {
      child,
      finish: () => {
        for (const reader of readers) reader.finish();
        stopInput();
      },
    };
  } catch (error) {
    for (const { read, write } of pipes) for (const fd of [read, write]) tryClose(fd);
    throw error;
  }
}

/** Without input a command finds its end at once. It need not read what it is given. */
function feed(fd: number, bytes: Uint8Array): () => void {
  if (bytes.length === 0) {
    closeSync(fd);
    return () => undefined;
  }
  doNotBlock(fd);
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.on("error", () => socket.destroy());
  socket.end(bytes);
  return () => socket.destroy();
}

/** @throws what Node says when the process could not be started */
async function awaitEnd(
  { child, finish }: StartedProcess,
  cut: PromiseWithResolvers<"timed-out" | "cancelled">,
  limitMs: number | undefined,
  reaper: Reaper,
): Promise<ExecResult["end"]> {
  const { pid } = child;
  const disown = pid === undefined ? () => undefined : reaper.own(pid);
  const exited = new Promise<ExecResult["end"]>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve(
        signal === null ? { kind: "exited", exitCode: code ?? 0 } : { kind: "signalled", signal }, // real-time signals have no names and come as numbers
      ),
    );
  });
  const timer = limitMs === undefined ? undefined : setTimeout(() => cut.resolve("timed-out"), limitMs);
  try {
    const first = await Promise.race([exited, cut.promise]);
    if (typeof first !== "string") return first;
    if (pid !== undefined) await endGroup(pid, exited);
    const end = await exited;
    return first === "timed-out" && limitMs !== undefined ? { kind: "timed-out", limitMs } : end;
  } finally {
    clearTimeout(timer);
    disown();
    finish();
  }
}

async function endGroup(leader: number, exited: Promise<unknown>): Promise<void> {
  let hasExited = false;
  const noted = exited.then(() => {
    hasExited = true;
  });
  const isGone = (): boolean => hasExited && !signalGroup(leader, 0);
  signalGroup(leader, "SIGTERM");
  if (await isDoneWithin(isGone, TERM_PATIENCE_MS)) return;
  signalGroup(leader, "SIGKILL");
  await Promise.all([isDoneWithin(isGone, KILL_PATIENCE_MS), noted]);
}

function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
    return false;
  }
}

function refuse(stderr: OutputCapture, exitCode: number, reason: string): ExecResult["end"] {
  stderr.push(Buffer.from(`sh: ${reason}\n`));
  return { kind: "exited", exitCode };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function tryClose(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // it was closed before the error came
  }
}
