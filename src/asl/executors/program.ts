// The program of a container or job: a function of this process, or a child process with the entry point and environment
// of the image. It is stopped like a container: SIGTERM to all of its processes, SIGKILL when the stop time is over.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { z } from "zod";

export interface ProgramRun {
  /** Merged from the definition, the overrides and the service. */
  readonly environment: Readonly<Record<string, string>>;
  /** The override's command, which replaces the definition's; undefined without one. */
  readonly command: readonly string[] | undefined;
  /** Fires when the task is to stop. */
  readonly signal: AbortSignal;
  /** Waits on the runner's clock. */
  readonly sleep: (ms: number) => Promise<void>;
}

/** How a program ended; a service may report more than its exit code. */
export interface ProgramEnd {
  readonly exitCode?: number;
  readonly stopCode?: string;
  /** The container's reason. */
  readonly reason?: string;
  /** The reason of a job's attempt, e.g. a host that was lost. */
  readonly statusReason?: string;
  /** The error that a function threw; a service does not see it. */
  readonly error?: unknown;
}

export type Program =
  | { readonly kind: "function"; readonly run: (run: ProgramRun) => Promise<ProgramEnd> }
  | {
      readonly kind: "process";
      /** The image's entry point; the command follows it. */
      readonly entryPoint: readonly string[];
      readonly command?: readonly string[];
      readonly folder?: string;
      /** Gets the program's output. */
      readonly onOutput?: (chunk: Uint8Array) => void;
    };

/** ECS's default of stopTimeout. */
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
      // A container has its own environment and takes only PATH from this process, to find programs.
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
    // A container ends with its first process, and every process that it left behind ends with it.
    child.on("exit", (code, signal) => {
      kill("SIGKILL");
      end({ exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) });
    });
    if (run.signal.aborted) stop();
    else run.signal.addEventListener("abort", stop);
  });
}
