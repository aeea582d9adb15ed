// One sandbox: commands, files and terminals go in by its entry process.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, InputError } from "../../failure/errors.ts";
import type { RemoteTerminal } from "../../sandboxd/remote-terminal.ts";
import { capturedText } from "../captured-text.ts";
import {
  assertPath,
  commandContext,
  commandRequest,
  TERMINAL_NAME,
  TERMINAL_SHELL,
} from "../command-request.ts";
import { DeadlineTimer } from "../deadline-timer.ts";
import { killEverything, type SandboxProcesses } from "../kill-everything.ts";
import { ownMemoryKills } from "../memory-kills.ts";
import { OutputCapture } from "../output-capture.ts";
import { OutputPace } from "../output-pace.ts";
import { listProcesses, type ProcessId, pidNamespace } from "../processes.ts";
import { RequestedCommands } from "../requested-commands.ts";
import type { ProcessRun } from "../run-process.ts";
import type {
  DownloadResult,
  ExecOptions,
  ExecResult,
  FileChange,
  Lease,
  Sandbox,
  SandboxSpec,
  SuccessorOptions,
  Terminal,
  TerminalOptions,
  UploadOptions,
  UploadResult,
} from "../sandbox.ts";
import { isAtOrBelow, makeSuccessor } from "../successor.ts";
import { packFolder, unpackInto } from "./archives.ts";
import { broken } from "./broken.ts";
import { commandDefaults, enteredWith } from "./command-environment.ts";
import type { Command, EntryProcess } from "./entry-process.ts";
import { entrypointStarted } from "./entrypoint.ts";
import type { Host } from "./host.ts";
import { type Entrance, runCommand } from "./run-command.ts";
import { SandboxChanges } from "./sandbox-changes.ts";
import { HOST_ENV, terminalWords } from "./spawner.ts";
import type { HostedTerminals } from "./terminals/hosted-terminals.ts";
import { ERROR_TEXT_BYTES, TOOL_LIMIT_MS, type ToolEnd, type ToolRun } from "./tool-run.ts";
import { TOOLKIT_TAR } from "./toolkit.ts";

/** Shared by all commands of all sandboxes: however many print without end, they take a fifth of the driver's time. */
const AGENT_OUTPUT = new OutputPace({ bytesPerSecond: 64 << 20, burstBytes: 64 << 20 });

const TOOL_ENV = Object.entries(HOST_ENV).map(([name, value]) => `${name}=${value}`);

const UNPACK_CHANGES = [...TOOLKIT_TAR, "-x", "-p", "-o", "-f", "-"];
/** A successor has this much more room, so that tests can write where an agent has filled its disk. */
const SUCCESSOR_ROOM_BYTES = 16 << 20;

/** Where a sandbox is. */
export interface SandboxParts {
  readonly host: Host;
  readonly first: ProcessId;
  readonly entrance: Entrance;
  readonly terminals: Pick<HostedTerminals, "open">;
  /** Makes another of its provider. */
  readonly create: (spec: SandboxSpec, lease: Lease) => Promise<BubblewrapSandbox>;
}

export class BubblewrapSandbox implements Sandbox {
  readonly lease: Lease;
  #spec: SandboxSpec;
  readonly #host: Host;
  readonly #first: ProcessId;
  readonly #entrance: Entrance;
  readonly #hostedTerminals: SandboxParts["terminals"];
  readonly #create: SandboxParts["create"];
  readonly #onEnd: () => void;
  readonly #requested = new RequestedCommands();
  readonly #running = new Set<Promise<unknown>>();
  /** All that were ever asked for: of one whose shell has ended, what it has shown can be read until the sandbox ends. */
  readonly #terminals: Promise<RemoteTerminal>[] = [];
  #killing: Promise<void> | undefined;
  readonly #changes = new SandboxChanges((argv, run) => this.runTool(argv, run));
  /** Told when it was last seen alive and about to do something. */
  #killsBefore = ownMemoryKills();
  #ending: Promise<void> | undefined;
  #endReason = "its first process is gone";
  /** The driver's own; should the driver hang, others sweep. */
  readonly #deadline: DeadlineTimer;

  /** @param onEnd called once, when nothing of the sandbox is left */
  constructor(
    { spec, lease }: { readonly spec: SandboxSpec; readonly lease: Lease },
    { host, first, entrance, terminals, create }: SandboxParts,
    onEnd: () => void,
  ) {
    this.#create = create;
    this.#spec = spec;
    this.lease = lease;
    this.#host = host;
    this.#first = first;
    this.#entrance = entrance;
    this.#hostedTerminals = terminals;
    this.#onEnd = onEnd;
    this.#deadline = new DeadlineTimer(lease.deadlineMs, () => {
      this.end("its deadline passed").catch(() => undefined); // whoever disposes of it gets the error
    });
  }

  exec(command: string, options: ExecOptions): Promise<ExecResult> {
    return this.#requested.run(options.requestId, command, () => this.#exec(command, options));
  }

  async terminal(options: TerminalOptions): Promise<Terminal> {
    await this.#killing;
    this.#assertAlive();
    this.#changes.begin();
    const env = { ...options.env, TERM: TERMINAL_NAME };
    const context = commandContext(commandDefaults(this.#spec), { ...options, env });
    const shell = { argv: TERMINAL_SHELL, ...enteredWith(this.#spec, context, options.network) };
    const isImage = this.#spec.image.kind !== "host";
    const words = terminalWords(this.#host, this.#first, shell, { isImage });
    const program = { words, env: HOST_ENV, owner: this.#host.user };
    const opening = this.#hostedTerminals.open(program, options);
    this.#terminals.push(opening);
    const terminal = await opening;
    this.#assertAlive(); // whoever ended it meanwhile disposes of the terminal
    return terminal;
  }

  upload(tar: Uint8Array, folder: string, { emptied = [] }: UploadOptions = {}): Promise<UploadResult> {
    this.#changes.begin();
    return unpackInto(folder, tar, emptied, (argv, run) => this.runTool(argv, run));
  }

  download(folder: string, limitBytes: number): Promise<DownloadResult> {
    return packFolder(folder, limitBytes, (argv, run) => this.runTool(argv, run));
  }

  /** Runs a program with nothing of the spec's environment. */
  async runTool(argv: readonly string[], { onStdout = () => undefined, ...run }: ToolRun): Promise<ToolEnd> {
    const { cwd, removed = [], made = [], emptied = [], stdin, signal } = run;
    const stderr = new OutputCapture(ERROR_TEXT_BYTES);
    const command = { argv, env: TOOL_ENV, cwd, removed, made, emptied };
    const { end } = await this.#run(command, {
      ...{ stdin, signal, onStdout, limitMs: TOOL_LIMIT_MS },
      onStderr: chunk => stderr.push(chunk),
    });
    const said = capturedText(stderr.read()).trim();
    return { end, said: said !== "" ? said : `it ended by ${JSON.stringify(end)}` };
  }

  /** Returns when the sandbox is ready to be worked in, whatever became of the entrypoint. */
  async startEntrypoint(words: readonly string[]): Promise<void> {
    await entrypointStarted(words, (argv, onStdout) =>
      this.#run(
        { argv, ...enteredWith(this.#spec, commandContext(commandDefaults(this.#spec), {}), undefined) },
        { onStdout, onStderr: () => undefined, pace: AGENT_OUTPUT },
      ),
    );
    this.#assertAlive();
  }

  killAgents(): Promise<void> {
    // An entrypoint's end is waited for too, for which alone this process would not stay alive.
    this.#killing ??= this.#entrance.spawner
      .awaited(this.#changes.rest(() => this.#killAgents()))
      .finally(() => {
        this.#killing = undefined;
      });
    return this.#killing;
  }

  async changedFiles(): Promise<readonly FileChange[]> {
    return this.#changes.sinceImage(this.#spec);
  }

  async successor(
    lease: Lease,
    { without }: SuccessorOptions,
  ): Promise<BubblewrapSandbox | { readonly refused: string }> {
    const left = await without;
    await this.killAgents();
    const { image, diskBytes } = this.#spec;
    // The spec's files come with the rest, unless some are to stay as the image has them.
    const isPlaced = image.files.some(({ to }) =>
      left.some(path => isAtOrBelow(to, path) || isAtOrBelow(path, to)),
    );
    const spec: SandboxSpec = {
      ...this.#spec,
      image: isPlaced ? image : { ...image, files: [] },
      diskBytes: diskBytes + SUCCESSOR_ROOM_BYTES,
    };
    return makeSuccessor({
      make: () => this.#create(spec, lease),
      find: () => this.#changes.carried(this.#spec, left),
      carry: async (sandbox, { tar, removed }) => {
        sandbox.#keepSpec(this.#spec);
        const { end, said } = await sandbox.runTool(UNPACK_CHANGES, { cwd: "/", removed, stdin: tar });
        return end.kind === "exited" && end.exitCode === 0 ? undefined : said;
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("it was disposed of");
  }

  /** @param reason what later users of it are told */
  end(reason: string): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  async #exec(command: string, options: ExecOptions): Promise<ExecResult> {
    const { user, network, stdin, signal } = options;
    if (user !== undefined && !["root", "0"].includes(user)) {
      throw new InputError({
        what: `a command cannot run as user ${JSON.stringify(user)}`,
        where: "bubblewrap sandbox",
        expected: "root: one user is mapped into it, and inside that is root",
        fix: "remove the user from the task, or use the docker provider",
      });
    }
    const defaults = commandDefaults(this.#spec);
    const request = commandRequest(command, options, { lease: this.lease, defaults });
    if ("refused" in request) return request.refused;
    const { argv, limitMs, outputLimitBytes } = request;
    const [stdout, stderr] = [new OutputCapture(outputLimitBytes), new OutputCapture(outputLimitBytes)];
    this.#changes.begin();
    const { end, durationMs } = await this.#run(
      { argv, ...enteredWith(this.#spec, request, network) },
      {
        ...{ stdin, limitMs, signal, pace: AGENT_OUTPUT },
        onStdout: chunk => stdout.push(chunk),
        onStderr: chunk => stderr.push(chunk),
      },
    );
    return { end, stdout: stdout.read(), stderr: stderr.read(), durationMs };
  }

  async #run(command: Command, run: ProcessRun): ReturnType<typeof runCommand> {
    const { cwd, made = [], emptied = [] } = command; // without a path: the folder of changes
    for (const path of [...(cwd === "" ? [] : [cwd]), ...made, ...emptied]) assertPath(path);
    await this.#killing;
    this.#assertAlive();
    this.#killsBefore = ownMemoryKills();
    const running = runCommand(command, run, this.#entrance);
    const settled = running.then(
      () => undefined,
      () => undefined,
    );
    this.#running.add(settled);
    try {
      return await running;
    } finally {
      this.#running.delete(settled);
      // Also when it failed: only here is known which sandbox was lost, and why.
      this.#assertAlive();
    }
  }

  /** Also those that are being opened. */
  async #eachTerminal(act: (terminal: RemoteTerminal) => Promise<void>): Promise<void> {
    await Promise.all(this.#terminals.map(opening => opening.then(act, () => undefined)));
  }

  async #killAgents(): Promise<void> {
    this.#assertAlive();
    // Before: a shell that has not entered yet would come in afterwards.
    await this.#eachTerminal(terminal => terminal.kill());
    if (!(await killEverything(processesInside(this.#entrance.entryProcess, this.#first))))
      throw broken(`processes inside of sandbox process ${this.#first.pid} cannot be ended`);
    this.#assertAlive();
    // Their ends are known already; what they printed is being put in order.
    await Promise.all(this.#running);
    this.#assertAlive();
  }

  /** A successor is another's spec with more room: to its own successors it passes on the spec as it was. */
  #keepSpec(spec: SandboxSpec): void {
    this.#spec = spec;
  }

  async #end(reason: string): Promise<void> {
    this.#endReason = reason;
    this.#deadline.cancel();
    this.#requested.forget();
    await this.#entrance.entryProcess.end();
    await Promise.all([...this.#running, this.#eachTerminal(terminal => terminal[Symbol.asyncDispose]())]);
    this.#onEnd();
  }

  #assertAlive(): void {
    if (this.#ending === undefined && !this.#entrance.entryProcess.isGone) return;
    const { id, generation } = this.lease;
    // Nothing inside can reach its first process or the entry process, but for taking so much memory that the kernel kills.
    if (this.#ending === undefined && !this.#entrance.spawner.isGone && ownMemoryKills() > this.#killsBefore)
      throw broken("it ended when memory ran out");
    throw new Failure("SandboxLost", `sandbox ${id} (generation ${generation}) is lost: ${this.#endReason}`, {
      retryable: true,
    });
  }
}

/** The process inside that kills all others takes some ms; one that others stop again and again takes for ever. */
const KILLER_WAIT_MS = 250;

/** @param init process 1 of the sandbox, which stays */
function processesInside(entryProcess: EntryProcess, init: ProcessId): SandboxProcesses {
  return {
    killAll: () => Promise.race([entryProcess.killAll(), sleep(KILLER_WAIT_MS, "unknown" as const)]),
    living: () => {
      const namespace = pidNamespace(init.pid);
      if (namespace === undefined) return []; // gone: every namespace that cannot be read would look like its own
      return listProcesses().filter(
        ({ pid, isDead }) => !isDead && pid !== init.pid && pidNamespace(pid) === namespace,
      );
    },
    isGone: () => entryProcess.isGone,
  };
}
