// One command of the sandbox, started by the daemon: its output bounded, its time too.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, statSync } from "node:fs";
import { OutputCapture } from "../sandbox/output-capture.ts";
import { sendSignal } from "../sandbox/processes.ts";
import { type ProcessEnd, runProcess, type StartedProcess } from "../sandbox/run-process.ts";
import type { ExecResult } from "../sandbox/sandbox.ts";
import { doNotBlock, openPipe, type Pipe } from "./kernel.ts";
import { withCommandScore } from "./oom-score.ts";
import type { Reaper } from "./reaper.ts";
import type { CommandUser } from "./users.ts";

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
  /** Signals its whole process group. @returns whether any of it is there */
  readonly signal: (signal: NodeJS.Signals) => boolean;
  /** Ends it before its time, politely at first. */
  readonly cancel: () => void;
}

export function startCommand(start: CommandStart, reaper: Reaper): RunningCommand {
  const startedAt = performance.now();
  const stdout = new OutputCapture(start.outputLimitBytes);
  const stderr = new OutputCapture(start.outputLimitBytes);
  const cancelled = new AbortController();
  let leader: number | undefined;
  let isOver = false;
  const run = async (): Promise<CommandEnd> => {
    const refuse = (exitCode: number, reason: string): CommandEnd => {
      stderr.push(Buffer.from(`sh: ${reason}\n`));
      return { end: { kind: "exited", exitCode }, durationMs: performance.now() - startedAt };
    };
    if (!isFolder(start.cwd)) return refuse(NOT_USABLE, `cannot change to ${start.cwd}`);
    try {
      const started = startProcess(start, reaper);
      leader = started.leader;
      const { end, durationMs } = await runProcess(started, {
        ...{ stdin: start.stdin, limitMs: start.limitMs, signal: cancelled.signal },
        onStdout: chunk => stdout.push(chunk),
        onStderr: chunk => stderr.push(chunk),
      });
      return { end, durationMs };
    } catch (error) {
      const [program = ""] = start.argv;
      const code = error instanceof Error && "code" in error ? `${error.code}` : `${error}`;
      return refuse(code === "ENOENT" ? NOT_FOUND : NOT_USABLE, `cannot run ${program}: ${code}`);
    }
  };
  const ended = run().finally(() => {
    isOver = true;
  });
  return {
    ...{ stdout, stderr, ended, hasEnded: () => isOver },
    signal: signal => leader !== undefined && sendSignal(-leader, signal),
    cancel: () => cancelled.abort(),
  };
}

/**
 * Node starts a process before it returns, so that its score and its place among our own children are right.
 *
 * @throws what Node says when it has no pipe or process
 */
function startProcess(
  { argv, env, cwd, user }: CommandStart,
  reaper: Reaper,
): StartedProcess & { readonly leader: number | undefined } {
  const startedAt = performance.now();
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
    for (const fd of [input.write, output.read, errors.read]) doNotBlock(fd);
    const disown = child.pid === undefined ? () => undefined : reaper.own(child.pid);
    return {
      leader: child.pid,
      ended: endOf(child, startedAt).finally(disown),
      pid: async () => child.pid,
      pipes: { input: { write: input.write }, output: output.read, errors: errors.read },
    };
  } catch (error) {
    for (const { read, write } of pipes) for (const fd of [read, write]) tryClose(fd);
    throw error;
  }
}

/** Rejects with what Node says when the process could not be started. */
function endOf(child: ChildProcess, startedAt: number): Promise<ProcessEnd> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve({
        // Real-time signals have no names and come as numbers.
        end: signal === null ? { kind: "exited", exitCode: code ?? 0 } : { kind: "signalled", signal },
        durationMs: performance.now() - startedAt,
      }),
    );
  });
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
