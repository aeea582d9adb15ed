// Pipes between this process and a command. Node gives a child sockets instead, and those cannot be opened again by
// name: `echo no > /dev/stderr` would fail inside with "No such device or address". Node cannot make a pipe either, so
// `mkfifo` makes many at a time, and each is unlinked once both of its ends are open.
import { chownSync, closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { Failure, InvariantError } from "../../failure/errors.ts";
import { folderOfThisProcess } from "../../store/temporary-file.ts";
import type { Host } from "./host.ts";
import { runHostProcess } from "./host-process.ts";

const BATCH = 128;

/** One side of a command's pipes: stdin (when it gets any), stdout, stderr. */
export interface PipeEnds {
  readonly input: number | undefined;
  readonly output: number;
  readonly errors: number;
}

export interface CommandPipes {
  /** These never block. */
  readonly ours: PipeEnds;
  /** To be closed once the command has started. */
  readonly theirs: PipeEnds;
}

export class NamedPipes {
  readonly #host: Host;
  readonly #folder: string;
  readonly #ready: string[] = [];
  #madeCount = 0;
  #making: Promise<void> | undefined;

  constructor(host: Host) {
    this.#host = host;
    // One folder per provider: a process may open several.
    const ofProcess = folderOfThisProcess(host.runFolder.pipes);
    this.#folder = join(ofProcess, `${performance.now()}`);
    mkdirSync(this.#folder, { recursive: true, mode: 0o755 });
    // The sandbox's user owns the pipes, else its commands could not open them again.
    if (host.user !== undefined) chownSync(this.#folder, host.user.uid, host.user.gid);
  }

  /** @throws Failure SandboxUnavailable when the machine runs out of descriptors or processes */
  async open({ input }: { readonly input: boolean }): Promise<CommandPipes> {
    const paths = [await this.#take(), await this.#take(), ...(input ? [await this.#take()] : [])];
    const opened: number[] = [];
    const open = (path: string | undefined, flags: number): number => {
      const fd = openSync(path ?? "", flags);
      opened.push(fd);
      return fd;
    };
    try {
      // fifo(7): a reader that does not block opens at once, and while it is there a writer does.
      const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;
      const [output, errors, stdin] = paths.map(path => open(path, O_RDONLY | O_NONBLOCK));
      const theirs = { output: open(paths[0], O_WRONLY), errors: open(paths[1], O_WRONLY), input: undefined };
      if (output === undefined || errors === undefined)
        throw new InvariantError("two pipes have two readers");
      if (stdin === undefined) return { ours: { output, errors, input: undefined }, theirs };
      const ours = { output, errors, input: open(paths[2], O_WRONLY | O_NONBLOCK) };
      const blocking = open(paths[2], O_RDONLY);
      closeSync(stdin);
      return { ours, theirs: { ...theirs, input: blocking } };
    } catch (error) {
      for (const fd of opened) closeSync(fd);
      throw new Failure("SandboxUnavailable", `no pipe for a command: ${error}`, {
        retryable: true,
        cause: error,
      });
    } finally {
      for (const path of paths) unlinkSync(path);
    }
  }

  async remove(): Promise<void> {
    await this.#making?.catch(() => undefined); // else some would appear behind our back
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #take(): Promise<string> {
    for (;;) {
      const path = this.#ready.pop();
      if (path === undefined) {
        await this.#refill();
        continue;
      }
      // Ahead of time; should it fail, it is tried again when none is left, and then it is an error.
      if (this.#ready.length === BATCH / 2) this.#refill().catch(() => undefined);
      return path;
    }
  }

  #refill(): Promise<void> {
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async #make(): Promise<void> {
    const names = Array.from({ length: BATCH }, () => join(this.#folder, `${this.#madeCount++}`));
    const { exitCode, stderr } = await runHostProcess(
      [this.#host.tools.mkfifo, "-m", "600", ...names],
      this.#host,
    );
    if (exitCode !== 0)
      throw new Failure("SandboxUnavailable", `no pipes for commands: ${stderr.trim()}`, { retryable: true });
    this.#ready.push(...names);
  }
}
