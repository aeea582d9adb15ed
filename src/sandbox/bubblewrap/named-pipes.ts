// Pipes between this process and a command. Node gives a child sockets instead, and those cannot be opened again by
// name: `echo no > /dev/stderr` would fail inside with "No such device or address". Node cannot make a pipe either, so
// the spawner makes many at a time; whoever opens the other end of one unlinks it.
import { chownSync, closeSync, constants, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../failure/errors.ts";
import { makeFolders } from "../../files/make-folders.ts";
import { folderOfThisProcess } from "../../files/temporary-file.ts";
import type { ProcessPipes } from "../run-process.ts";
import type { Host } from "./host.ts";

const BATCH = 256;

/** Makes pipes named by the numbers from `first` on. */
type MakePipes = (first: number, count: number) => Promise<void>;

export interface CommandPipes extends ProcessPipes {
  /** Names of stdin ("" when it gets none), stdout and stderr, for the entry process. */
  readonly names: readonly [string, string, string];
}

export class NamedPipes {
  readonly folder: string;
  readonly #make: MakePipes;
  readonly #ready: string[] = [];
  #madeCount = 0;
  #making: Promise<void> | undefined;

  constructor(host: Host, make: MakePipes) {
    this.#make = make;
    // One folder per spawner: a process may have had several.
    this.folder = join(folderOfThisProcess(host.runFolder.pipes), `${performance.now()}`);
    makeFolders(this.folder, { mode: 0o755 });
    // The sandbox's user owns the pipes, else its commands could not open them again.
    if (host.user !== undefined) chownSync(this.folder, host.user.uid, host.user.gid);
  }

  /** @throws Failure SandboxUnavailable when the machine runs out of descriptors or inodes */
  async open({ input }: { readonly input: boolean }): Promise<CommandPipes> {
    const output = await this.take();
    const errors = await this.take();
    const stdin = input ? await this.take() : "";
    const opened: number[] = [];
    const open = (name: string, flags: number): number => {
      const fd = openSync(this.path(name), flags | constants.O_NONBLOCK);
      opened.push(fd);
      return fd;
    };
    try {
      // fifo(7): a reader that does not block opens at once, and while it is there a writer does.
      const { O_RDONLY, O_WRONLY } = constants;
      const ours = { output: open(output, O_RDONLY), errors: open(errors, O_RDONLY) };
      const keep = input ? open(stdin, O_RDONLY) : undefined;
      return {
        names: [stdin, output, errors],
        ...ours,
        input: keep === undefined ? undefined : { keep, write: open(stdin, O_WRONLY) },
      };
    } catch (error) {
      for (const fd of opened) closeSync(fd);
      throw new Failure("SandboxUnavailable", `no pipe for a command: ${error}`, {
        retryable: true,
        cause: error,
      });
    }
  }

  /** @returns name of a pipe that nobody has opened yet */
  async take(): Promise<string> {
    for (;;) {
      const name = this.#ready.pop();
      if (name === undefined) {
        await this.#refill();
        continue;
      }
      // Ahead of time; should it fail, it is tried again when none is left, and then it is an error.
      if (this.#ready.length === BATCH / 2) this.#refill().catch(() => undefined);
      return name;
    }
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #refill(): Promise<void> {
    this.#making ??= this.#makeBatch().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async #makeBatch(): Promise<void> {
    const first = this.#madeCount;
    this.#madeCount += BATCH;
    await this.#make(first, BATCH);
    for (let index = 0; index < BATCH; index++) this.#ready.push(`${first + index}`);
  }
}
