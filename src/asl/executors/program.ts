// What a container or job runs: a function of this process, or a child process with the entry point and environment of
// the image. Ended as a container is: SIGTERM to all of its processes, SIGKILL when the stop time is over.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { z } from "zod";

export interface ProgramRun {
  /** Of the definition, the overrides and the service together. */
  readonly environment: Readonly<Record<string, string>>;
  /** The override's, which replaces the definition's; undefined where there is none. */
  readonly command: readonly string[] | undefined;
  /** Fires when the task is to stop. */
  readonly signal: AbortSignal;
  /** Waits on the runner's clock. */
  readonly sleep: (ms: number) => Promise<void>;
}

/** How a program ended; a service may say more about it than its exit code. */
export interface ProgramEnd {
  readonly exitCode?: number;
  readonly stopCode?: string;
  /** Of the container. */
  readonly reason?: string;
  /** Of a job's attempt, e.g. a host that was lost. */
  readonly statusReason?: string;
  /** What a function threw; a service does not see it. */
  readonly error?: unknown;
}

export type Program =
  | { readonly kind: "function"; readonly run: (run: ProgramRun) => Promise<ProgramEnd> }
  | {
      readonly kind: "process";
      /** The image's entry point; the command is appended to it. */
      readonly entryPoint: readonly string[];
      readonly command?: readonly string[];
      readonly folder?: string;
      /** Gets what the program prints. */
      readonly onOutput?: (chunk: Uint8Array) => void;
    };

/** ECS: stopTimeout, 30 s where none is given. */
const STOP_TIMEOUT_SECONDS = 30;

const Overrides = z.array(z.looseObject({ Name: z.string(), Value: z.string() }));

/** `Environment` of a request: a list of names and values. */
export function environmentOf(list: unknown): Record<string, string> {
  return Object.fromEntries(Overrides.parse(list ?? []).map(({ Name: name, Value: value }) => [name, value]));
}

/** Resolves when the program, and every process that it started in its group, has ended or was killed. */
export function runProgram(
  program: Program,
  run: ProgramRun,
  { stopTimeoutSeconds = STOP_TIMEOUT_SECONDS }: { readonly stopTimeoutSeconds?: number } = {},
): Promise<ProgramEnd> {
  return program.kind === "function" ? program.run(run) : runProcess(program, run, stopTimeoutSeconds);
}

function runProcess(
  { entryPoint, command = [], folder, onOutput }: Program & { readonly kind: "process" },
  run: ProgramRun,
  stopTimeoutSeconds: number,
): Promise<ProgramEnd> {
  const [file, ...args] = [...entryPoint, ...(run.command ?? command)];
  return new Promise(resolve => {
    const child = spawn(file, args, {
      cwd: folder,
      // A container has its own environment; a path to find programs is all that it takes from this one.
      env: { PATH: process.env.PATH ?? "", ...run.environment },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let killer: NodeJS.Timeout | undefined;
    const kill = (signal: NodeJS.Signals) => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, signal);
      } catch {
        // The group is gone already.
      }
    };
    const stop = () => {
      kill("SIGTERM");
      killer = setTimeout(() => kill("SIGKILL"), 1000 * stopTimeoutSeconds);
    };
    const end = (how: ProgramEnd) => {
      clearTimeout(killer);
      run.signal.removeEventListener("abort", stop);
      resolve(how);
    };
    child.stdout.on("data", chunk => onOutput?.(chunk));
    child.stderr.on("data", chunk => onOutput?.(chunk));
    child.on("error", error => end({ reason: `CannotStartContainerError: ${error.message}` }));
    // The container ends with its first process; what that left behind goes with it.
    child.on("exit", (code, signal) => {
      kill("SIGKILL");
      end({ exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) });
    });
    if (run.signal.aborted) stop();
    else run.signal.addEventListener("abort", stop);
  });
}
