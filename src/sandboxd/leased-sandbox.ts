// A sandbox in a container, wherever that is: its daemon does the work, its provider makes and removes it.
import { randomUUID } from "node:crypto";
import { Failure } from "../failure/errors.ts";
import { CachedUntilExec } from "../sandbox/cached-until-exec.ts";
import { DeadlineTimer } from "../sandbox/deadline-timer.ts";
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
} from "../sandbox/sandbox.ts";
import { carriedPaths, makeSuccessor } from "../sandbox/successor.ts";
import type { DaemonClient } from "./client.ts";
import { type DaemonSandbox, ENDLESS_DOWNLOAD } from "./daemon-sandbox.ts";
import { type Difference, differenceOf } from "./difference.ts";
import { parseBody } from "./parse-body.ts";
import { Changes, PIECE_BYTES } from "./protocol.ts";

export interface ContainerParts {
  readonly client: DaemonClient;
  readonly sandbox: DaemonSandbox;
  /** A fresh sandbox of the same spec, none of whose changes are this one's. */
  readonly createAnother: (spec: SandboxSpec, lease: Lease) => Promise<LeasedSandbox>;
  /** Removes it and all that was kept about it. Called again when it failed. */
  readonly remove: () => Promise<void>;
}

export class LeasedSandbox implements Sandbox {
  readonly lease: Lease;
  readonly #spec: SandboxSpec;
  readonly #container: ContainerParts;
  readonly #difference = new CachedUntilExec<Difference>();
  /** The driver's own; the daemon has one too, should the driver hang. */
  readonly #deadline: DeadlineTimer;
  #ending: Promise<void> | undefined;

  constructor(spec: SandboxSpec, lease: Lease, container: ContainerParts) {
    this.lease = lease;
    this.#spec = spec;
    this.#container = container;
    this.#deadline = new DeadlineTimer(lease.deadlineMs, () => {
      this.end("its deadline passed").catch(() => undefined); // whoever disposes of it gets the error
    });
  }

  exec(command: string, options: ExecOptions): Promise<ExecResult> {
    this.#difference.begin();
    return this.#container.sandbox.exec(command, options);
  }

  terminal(options: TerminalOptions): Promise<Terminal> {
    this.#difference.begin();
    return this.#container.sandbox.terminal(options);
  }

  upload(tar: Uint8Array, folder: string, { emptied = [] }: UploadOptions = {}): Promise<UploadResult> {
    this.#difference.begin();
    return this.#container.sandbox.upload(tar, folder, { emptied });
  }

  download(folder: string, limitBytes: number): Promise<DownloadResult> {
    return this.#container.sandbox.download(folder, limitBytes);
  }

  killAgents(): Promise<void> {
    return this.#difference.rest(() => this.#container.sandbox.killAgents());
  }

  async changedFiles(): Promise<readonly FileChange[]> {
    return (await this.#differenceNow()).changes;
  }

  async successor(
    lease: Lease,
    { without, network = this.#spec.network }: SuccessorOptions,
  ): Promise<LeasedSandbox | { readonly refused: string }> {
    const killed = this.killAgents();
    return makeSuccessor({
      make: () => killed.then(() => this.#container.createAnother({ ...this.#spec, network }, lease)),
      find: () => Promise.all([killed.then(() => this.#differenceNow()), without]),
      carry: (to, [{ carried, cleared }, left]) => {
        const { isKept, removed } = carriedPaths(cleared, left);
        return this.#carry(to, carried.filter(isKept), removed);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("it was disposed of");
  }

  /** @param reason what later users of it are told */
  end(reason: string): Promise<void> {
    this.#ending ??= this.#end(reason).catch((error: unknown) => {
      this.#ending = undefined; // so that it may be tried again
      throw error;
    });
    return this.#ending;
  }

  #differenceNow(): Promise<Difference> {
    const { client } = this.#container;
    return this.#difference.get(async () => {
      const { value, body } = await client.call({ op: "changes" });
      if (value.refused !== undefined)
        throw broken(nameOf(this.lease), `its files cannot be listed: ${value.refused}`);
      return differenceOf(parseBody(client, body, Changes, "changes"));
    });
  }

  async #end(reason: string): Promise<void> {
    this.#deadline.cancel();
    this.#container.client.lose(lost(nameOf(this.lease), reason));
    await this.#container.remove();
  }

  /**
   * Piece by piece, however much it is; and nothing but these paths, should the agent have got hold of our daemon.
   *
   * @returns why it was not taken
   */
  async #carry(
    to: LeasedSandbox,
    paths: readonly string[],
    removed: readonly string[],
  ): Promise<string | undefined> {
    const [from, into] = [this.#container.client, to.#container.client];
    const transfer = randomUUID();
    const limitBytes = Number.MAX_SAFE_INTEGER;
    let isAtEnd = false;
    for (let isFirst = true; ; isFirst = false) {
      const download = isFirst
        ? await from.call({ op: "download", transfer, folder: "/", paths: [...paths], limitBytes })
        : await from.call({ op: "download-more", transfer });
      const { state, refused } = download.value;
      if (state !== "more" && state !== "done") return refused ?? "its files cannot be read";
      const isLast = state === "done";
      if (isAtEnd && !isLast) throw from.distrust(ENDLESS_DOWNLOAD);
      isAtEnd = download.body.length < PIECE_BYTES;
      const lists = { emptied: [], removed: [...removed], only: [...paths], keepOwners: true };
      const { value } = isFirst
        ? await into.call({ op: "upload", transfer, folder: "/", ...lists, isLast }, download.body)
        : await into.call({ op: "upload-more", transfer, isLast }, download.body);
      if (value.refused !== undefined) return value.refused;
      if (isLast) return undefined;
    }
  }
}

export function nameOf({ id, generation }: Lease): string {
  return `sandbox ${id} (generation ${generation})`;
}

export function lost(what: string, reason: string): Failure {
  return new Failure("SandboxLost", `${what} is lost: ${reason}`, { retryable: true });
}

/** Ended by what ran in it. */
export function broken(what: string, reason: string): Failure {
  return new Failure("SandboxBroken", `${what} is broken: ${reason}`, { retryable: false });
}
