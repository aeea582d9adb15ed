// Our end of the program in spawner/, which starts sandboxes and enters them. It ends with this process, and its sandboxes
// with it.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { Failure } from "../../failure/errors.ts";
import { maskLeaks } from "../leaking-descriptors.ts";
import type { ProcessId } from "../processes.ts";
import { BackgroundProcess } from "./background-process.ts";
import type { BwrapSetup } from "./bwrap-options.ts";
import { type Command, EntryProcess } from "./entry-process.ts";
import type { Host } from "./host.ts";
import { NamedPipes } from "./named-pipes.ts";
import { encodeRequest, listFields, RequestPipe } from "./requests.ts";
import { TOOLKIT_LOADER } from "./toolkit.ts";

/**
 * Of programs that run outside. Variables of a task such as LD_PRELOAD must not reach them, and perl would take some as
 * options.
 */
export const HOST_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" } as const;

const PARTS = [
  ...["main", "kernel", "answers", "folders", "filters", "namespaces", "commands", "bwrap", "entry-process"],
  ...["serve", "enter"],
];

/** One text, given to perl as such: the sandbox's user may not be able to read where it lies. */
export const SPAWNER_PROGRAM = [
  ...PARTS.map(part => {
    const text = readFileSync(new URL(`./spawner/${part}.pl`, import.meta.url), "utf8");
    return `# line 1 "${part}.pl"\n${text}`;
  }),
  "main();\n",
].join("");

const NO_OVERLAY = { layers: [], mountPoint: "", changes: undefined };

/** Whether an image's programs may give files to users that are not there, to no effect: those of this machine do not. */
function ownersOf(isImage: boolean): "ignored" | "kept" {
  return isImage ? "ignored" : "kept";
}

export class Spawner {
  readonly pipes: NamedPipes;
  readonly #process: ChildProcessByStdio<Socket, Socket, null>;
  readonly #background: BackgroundProcess;
  readonly #exited: Promise<void>;
  readonly #entryProcesses = new Map<string, EntryProcess>();
  readonly #piped = new Map<string, (errno: number | undefined) => void>();
  #lastEntry = 0;
  #isGone = false;
  /** The beginning of an answer whose rest has not come yet. */
  #unfinished = "";

  constructor(host: Host) {
    this.pipes = new NamedPipes(host, (first, count) => this.#makePipes(first, count));
    const words = ["serve", process.arch, this.pipes.folder, host.tools.bwrap, TOOLKIT_LOADER];
    const child = spawn(host.tools.perl, ["-e", SPAWNER_PROGRAM, ...words], {
      cwd: "/",
      env: HOST_ENV,
      // An interrupt from the keyboard is for the driver, which then ends its sandboxes in order.
      detached: true,
      stdio: maskLeaks(["pipe", "pipe", "inherit"]),
      ...host.user,
    }) as ChildProcessByStdio<Socket, Socket, null>; // as its first three `stdio` say
    this.#process = child;
    this.#exited = new Promise(resolve => {
      child.once("exit", () => resolve());
      child.once("error", () => resolve());
    });
    void this.#exited.then(() => this.#lose());
    child.stdin.on("error", () => undefined); // it has ended
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#receive(text));
    this.#background = new BackgroundProcess(() => [child, child.stdin, child.stdout]);
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Starts a sandbox. @throws Failure SandboxUnavailable with what bwrap said */
  async open({ options, files, overlay, sizeBytes, network }: BwrapSetup): Promise<EntryProcess> {
    const name = await this.pipes.take();
    if (this.#isGone) throw ended();
    const entryProcess = new EntryProcess(new RequestPipe(this.pipes.path(name)));
    this.#lastEntry += 1;
    const number = `${this.#lastEntry}`;
    this.#entryProcesses.set(number, entryProcess);
    const { layers, mountPoint, changes } = overlay ?? NO_OVERLAY;
    this.#send([
      ...["open", number, name, network, ownersOf(overlay !== undefined)],
      ...[...listFields(layers), mountPoint, `${sizeBytes}`, changes ?? ""],
      ...[...listFields(files), ...options],
    ]);
    await this.awaited(entryProcess.first);
    return entryProcess;
  }

  /** Ends it, and with it every sandbox that is left. */
  async close(): Promise<void> {
    if (!this.#isGone) {
      this.#process.stdin.end();
      await this.awaited(this.#exited);
    }
    this.pipes.remove();
  }

  /** Keeps this process alive while it waits for what depends on answers of the spawner. */
  awaited<Result>(work: Promise<Result>): Promise<Result> {
    return this.#background.awaited(work);
  }

  async #makePipes(first: number, count: number): Promise<void> {
    if (this.#isGone) throw ended();
    const made = new Promise<number | undefined>(resolve => {
      this.#piped.set(`${first}`, resolve);
      this.#send(["pipes", `${first}`, `${count}`]);
    });
    const errno = await this.awaited(made);
    if (errno === 0) return;
    if (errno === undefined) throw ended();
    throw new Failure("SandboxUnavailable", `no pipes for commands (errno ${errno})`, { retryable: true });
  }

  #send(fields: readonly string[]): void {
    this.#process.stdin.write(encodeRequest(fields));
  }

  #receive(text: string): void {
    const lines = (this.#unfinished + text).split("\n");
    this.#unfinished = lines.pop() ?? "";
    for (const line of lines) {
      const [kind = "", about = "", ...words] = line.split(" ");
      if (kind === "piped") {
        this.#piped.get(about)?.(Number(words[0]));
        this.#piped.delete(about);
        continue;
      }
      const entryProcess = this.#entryProcesses.get(about);
      entryProcess?.receive([kind, ...words]);
      if (entryProcess?.isGone) this.#entryProcesses.delete(about);
    }
  }

  #lose(): void {
    this.#isGone = true;
    for (const resolve of this.#piped.values()) resolve(undefined);
    for (const entryProcess of this.#entryProcesses.values()) entryProcess.lose(ended());
    this.#entryProcesses.clear();
  }
}

/**
 * Words that run a program of a sandbox in the terminal that they are started in. Takes HUP as the hang-up of the
 * terminal, and TERM as the wish that the program be killed.
 */
export function terminalWords(
  { tools, user }: Host,
  { pid, started }: ProcessId,
  { argv, env, cwd, network }: Pick<Command, "argv" | "env" | "cwd" | "network">,
  { isImage }: { readonly isImage: boolean },
): readonly string[] {
  const [uid, gid] = user === undefined ? ["", ""] : [`${user.uid}`, `${user.gid}`];
  return [
    ...[
      tools.perl,
      "-e",
      SPAWNER_PROGRAM,
      "enter",
      process.arch,
      TOOLKIT_LOADER,
      `${pid}`,
      started,
      uid,
      gid,
    ],
    ...[network ?? "none", ownersOf(isImage), cwd],
    ...[...listFields(env), ...argv],
  ];
}

function ended(): Failure {
  return new Failure("SandboxUnavailable", "the process that starts sandboxes has ended", {
    retryable: true,
  });
}
