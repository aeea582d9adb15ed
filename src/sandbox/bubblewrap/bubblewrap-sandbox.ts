// One sandbox: commands, files and terminals go in through the namespaces of its process 1.
import { Failure, InputError, InvariantError } from "../../failure/errors.ts";
import { capturedText } from "../captured-text.ts";
import { leakingDescriptors } from "../leaking-descriptors.ts";
import { OutputCapture } from "../output-capture.ts";
import { PseudoTerminal, TERMINAL_NAME } from "../pseudo-terminal.ts";
import type {
  DownloadResult,
  ExecOptions,
  ExecResult,
  Lease,
  Sandbox,
  SandboxSpec,
  Terminal,
  TerminalOptions,
  UploadResult,
} from "../sandbox.ts";
import {
  assertEnvironment,
  type Surroundings,
  shellWords,
  surroundedWords,
  whyNotRunnable,
} from "./command-words.ts";
import { signalCommand } from "./end-command.ts";
import { enterWords, toolkitTool, toolkitWords } from "./enter.ts";
import { HOST_ENV } from "./host-process.ts";
import type { Init } from "./init.ts";
import { killEverythingInside } from "./kill-inside.ts";
import { type CommandHost, type CommandRun, runCommand } from "./run-command.ts";

const DEFAULT_OUTPUT_LIMIT_BYTES = 1 << 20;
/** For the toolkit inside; far more than 1 GB takes tar in memory. */
const TOOL_LIMIT_MS = 300_000;
const ERROR_TEXT_BYTES = 2048;
/** Longest time that a timer of Node can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What every command starts with, unless the spec or the command says otherwise: as Docker has it. */
const BASE_ENV = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
} as const;

/** The same with a locale, so that shells count characters; which ones an image has, only its author knows. */
const HOST_IMAGE_ENV = { ...BASE_ENV, LANG: "C.UTF-8" } as const;

/** Not a login shell: those set PATH anew, and the image's would be lost. */
const TERMINAL_SHELL = ["/bin/sh", "-c", "command -v bash >/dev/null && exec bash -i; exec /bin/sh -i"];

/** Exit code by which the download script says that there is no such folder; tar's own are 0, 1 and 2. */
const MISSING = 66;
const UPLOAD = `${toolkitTool("mkdir")} -p -- "$1" && cd -- "$1" && exec ${toolkitTool("tar")} -x -o --no-overwrite-dir -f -`;
const DOWNLOAD = `cd -- "$1" 2>/dev/null || exit ${MISSING}; exec ${toolkitTool("tar")} -c --sort=name -f - .`;

interface Requested {
  readonly command: string;
  readonly result: Promise<ExecResult>;
}

export class BubblewrapSandbox implements Sandbox {
  readonly lease: Lease;
  readonly #spec: SandboxSpec;
  readonly #init: Init;
  readonly #commandHost: CommandHost;
  readonly #onEnd: () => void;
  readonly #requested = new Map<string, Requested>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #terminals = new Set<PseudoTerminal>();
  #killing: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #endReason = "its first process is gone";
  #timer: NodeJS.Timeout | undefined;

  /** @param onEnd called once, when nothing of the sandbox is left */
  constructor(spec: SandboxSpec, lease: Lease, init: Init, commandHost: CommandHost, onEnd: () => void) {
    this.#spec = spec;
    this.lease = lease;
    this.#init = init;
    this.#commandHost = commandHost;
    this.#onEnd = onEnd;
    this.#awaitDeadline();
  }

  async exec(command: string, options: ExecOptions): Promise<ExecResult> {
    const { requestId } = options;
    if (requestId === undefined) return this.#exec(command, options);
    const earlier = this.#requested.get(requestId);
    if (earlier === undefined) {
      const result = this.#exec(command, options);
      this.#requested.set(requestId, { command, result });
      return result;
    }
    if (earlier.command !== command)
      throw new InvariantError("a request id belongs to one command", {
        requestId,
        command,
        first: earlier.command,
      });
    return earlier.result;
  }

  async terminal(options: TerminalOptions): Promise<Terminal> {
    await this.#killing;
    this.#assertAlive();
    const { host } = this.#commandHost;
    const surroundings = this.#surroundings(options.cwd, { ...options.env, TERM: TERMINAL_NAME });
    const shell = surroundedWords(TERMINAL_SHELL, surroundings);
    const words = enterWords(shell, { host, init: this.#init }, { session: false });
    const terminal = new PseudoTerminal(this.#asSandboxUser(words), options, {
      env: HOST_ENV,
      owner: host.user,
      signal: signalCommand,
    });
    this.#terminals.add(terminal);
    void terminal.closed.then(() => this.#terminals.delete(terminal));
    return terminal;
  }

  async upload(tar: Uint8Array, folder: string): Promise<UploadResult> {
    const { end, said } = await this.runTool(UPLOAD, [folder], { stdin: tar });
    return end.kind === "exited" && end.exitCode === 0 ? { unpacked: true } : { refused: said };
  }

  async download(folder: string, limitBytes: number): Promise<DownloadResult> {
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    const tooLarge = new AbortController();
    const collect = (chunk: Uint8Array): void => {
      sizeBytes += chunk.length;
      if (sizeBytes <= limitBytes) chunks.push(chunk);
      else tooLarge.abort(new TooLarge());
    };
    try {
      const { end, said } = await this.runTool(DOWNLOAD, [folder], {
        onStdout: collect,
        signal: tooLarge.signal,
      });
      if (sizeBytes > limitBytes) return { oversized: true };
      if (end.kind !== "exited") return { refused: said };
      if (end.exitCode === MISSING) return { missing: true };
      // 1: a file changed while it was read, which is no fault of the archive.
      return end.exitCode <= 1 ? { tar: new Uint8Array(Buffer.concat(chunks)) } : { refused: said };
    } catch (error) {
      if (error instanceof TooLarge) return { oversized: true };
      throw error;
    }
  }

  /**
   * Runs a script of the toolkit.
   *
   * @returns its end, and its last words or what stands for them
   */
  async runTool(
    script: string,
    paths: readonly string[],
    { onStdout = () => undefined, ...run }: Partial<Pick<CommandRun, "stdin" | "signal" | "onStdout">> = {},
  ): Promise<{ readonly end: ExecResult["end"]; readonly said: string }> {
    for (const path of paths)
      if (!path.startsWith("/")) throw new InvariantError("a path inside is absolute", { path });
    const stderr = new OutputCapture(ERROR_TEXT_BYTES);
    const words = toolkitWords(script, paths, { host: this.#commandHost.host, init: this.#init });
    const { end } = await this.#run(words, {
      ...run,
      limitMs: TOOL_LIMIT_MS,
      onStdout,
      onStderr: chunk => stderr.push(chunk),
    });
    const said = capturedText(stderr.read()).trim();
    return { end, said: said !== "" ? said : `it ended by ${JSON.stringify(end)}` };
  }

  killAgents(): Promise<void> {
    this.#killing ??= this.#killAgents().finally(() => {
      this.#killing = undefined;
    });
    return this.#killing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("it was disposed of");
  }

  /** @param reason what later users of it are told */
  end(reason: string): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  async #exec(
    command: string,
    { cwd, env, user, timeoutMs, stdin, outputLimitBytes, signal }: ExecOptions,
  ): Promise<ExecResult> {
    if (!(timeoutMs > 0))
      throw new InvariantError("a command's time limit is positive", { timeoutMs, command });
    if (user !== undefined && !["root", "0"].includes(user)) {
      throw new InputError({
        what: `a command cannot run as user ${JSON.stringify(user)}`,
        where: "bubblewrap sandbox",
        expected: "root: one user is mapped into it, and inside that is root",
        fix: "remove the user from the task, or use the docker provider",
      });
    }
    const limit = outputLimitBytes ?? DEFAULT_OUTPUT_LIMIT_BYTES;
    const [stdout, stderr] = [new OutputCapture(limit), new OutputCapture(limit)];
    const refusal = whyNotRunnable(command);
    if (refusal !== undefined) {
      stderr.push(Buffer.from(`sh: ${refusal}\n`));
      return {
        end: { kind: "exited", exitCode: 126 },
        stdout: stdout.read(),
        stderr: stderr.read(),
        durationMs: 0,
      };
    }
    const program = surroundedWords(shellWords(command), this.#surroundings(cwd, env));
    const inside = { host: this.#commandHost.host, init: this.#init };
    const words = enterWords(program, inside, { session: true });
    const { end, durationMs } = await this.#run(words, {
      stdin,
      limitMs: Math.min(timeoutMs, this.lease.deadlineMs - Date.now(), LONGEST_TIMER_MS),
      signal,
      onStdout: chunk => stdout.push(chunk),
      onStderr: chunk => stderr.push(chunk),
    });
    return { end, stdout: stdout.read(), stderr: stderr.read(), durationMs };
  }

  async #run(words: readonly string[], run: CommandRun): ReturnType<typeof runCommand> {
    await this.#killing;
    this.#assertAlive();
    const running = runCommand(words, run, this.#commandHost);
    const settled = running.then(
      () => undefined,
      () => undefined,
    );
    this.#running.add(settled);
    try {
      return await running;
    } finally {
      this.#running.delete(settled);
      // Also when the command seems to have failed: nsenter fails in words of its own when there is nothing to enter.
      this.#assertAlive();
    }
  }

  async #killAgents(): Promise<void> {
    this.#assertAlive();
    await killEverythingInside(this.#init, this.#commandHost.host, () => this.#running.size === 0);
    this.#assertAlive();
  }

  async #end(reason: string): Promise<void> {
    this.#endReason = reason;
    clearTimeout(this.#timer);
    this.#requested.clear();
    await this.#init.end();
    await Promise.all([
      ...this.#running,
      ...[...this.#terminals].map(terminal => terminal[Symbol.asyncDispose]()),
    ]);
    this.#onEnd();
  }

  /** The driver's own timer; should the driver hang, others sweep. */
  #awaitDeadline(): void {
    const leftMs = this.lease.deadlineMs - Date.now();
    this.#timer = setTimeout(
      () => {
        if (leftMs > LONGEST_TIMER_MS) this.#awaitDeadline();
        else this.end("its deadline passed").catch(() => undefined); // whoever disposes of it gets the error
      },
      Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
    );
    this.#timer.unref();
  }

  #assertAlive(): void {
    if (this.#ending === undefined && this.#init.isAlive()) return;
    const { id, generation } = this.lease;
    throw new Failure("SandboxLost", `sandbox ${id} (generation ${generation}) is lost: ${this.#endReason}`, {
      retryable: true,
    });
  }

  #surroundings(cwd: string | undefined, env: Readonly<Record<string, string>> = {}): Surroundings {
    assertEnvironment(env, "environment of a command");
    const base = this.#spec.image.kind === "host" ? HOST_IMAGE_ENV : BASE_ENV;
    return { cwd: cwd ?? this.#spec.workdir, env: { ...base, ...this.#spec.env, ...env } };
  }

  /** For what node-pty starts: it changes no groups and masks no descriptors. */
  #asSandboxUser(words: readonly string[]): readonly string[] {
    const { tools, user } = this.#commandHost.host;
    const closing = leakingDescriptors().map(fd => `${fd}>&-`);
    return [
      ...(closing.length === 0 ? [] : [tools.bash, "-c", `exec ${closing.join(" ")}; exec "$@"`, "bash"]),
      ...(user === undefined
        ? []
        : [tools.setpriv, `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"]),
      ...words,
    ];
  }
}

class TooLarge extends Error {}
