// A sandbox in a container of this machine's engine.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { Failure } from "../../failure/errors.ts";
import type { DaemonClient } from "../daemon/client.ts";
import type { DaemonSandbox } from "../daemon/daemon-sandbox.ts";
import type { DriverDoor } from "../daemon/driver-door.ts";
import type { Described } from "../daemon/protocol.ts";
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
import { lost, removeContainer } from "./container.ts";
import type { Engine } from "./engine.ts";
import {
  type Before,
  carriedWithout,
  compareFiles,
  type Difference,
  type ImageEntry,
  isOfEngine,
} from "./file-changes.ts";

/** Longest time that a timer of Node can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const EngineChanges = z.array(z.object({ Path: z.string(), Kind: z.int() })).nullable();

export interface DockerPlace {
  readonly engine: Engine;
  readonly container: string;
  readonly client: DaemonClient;
  readonly door: DriverDoor;
  readonly sandbox: DaemonSandbox;
  /** What was made and placed before anybody worked in it. */
  readonly placed: ReadonlyMap<string, Described>;
  /** Every path of the image, found out when it is asked for. */
  readonly listImage: () => Promise<ReadonlyMap<string, ImageEntry>>;
  /** @param joined the container whose network it has */
  readonly createAnother: (
    spec: SandboxSpec,
    lease: Lease,
    joined: string | undefined,
  ) => Promise<DockerSandbox>;
  readonly removeServices: () => Promise<void>;
  /** Called once, when nothing of the sandbox is left. */
  readonly onEnd: () => void;
}

export class DockerSandbox implements Sandbox {
  readonly lease: Lease;
  readonly #spec: SandboxSpec;
  readonly #place: DockerPlace;
  #timer: NodeJS.Timeout | undefined;
  #ending: Promise<void> | undefined;

  constructor(spec: SandboxSpec, lease: Lease, place: DockerPlace) {
    this.lease = lease;
    this.#spec = spec;
    this.#place = place;
    this.#awaitDeadline();
  }

  exec(command: string, options: ExecOptions): Promise<ExecResult> {
    return this.#place.sandbox.exec(command, options);
  }

  terminal(options: TerminalOptions): Promise<Terminal> {
    return this.#place.sandbox.terminal(options);
  }

  upload(tar: Uint8Array, folder: string, { emptied = [] }: UploadOptions = {}): Promise<UploadResult> {
    return this.#place.sandbox.upload(tar, folder, { emptied });
  }

  download(folder: string, limitBytes: number): Promise<DownloadResult> {
    return this.#place.sandbox.download(folder, limitBytes);
  }

  killAgents(): Promise<void> {
    return this.#place.sandbox.killAgents();
  }

  async changedFiles(): Promise<readonly FileChange[]> {
    return (await this.#difference()).changes;
  }

  async successor(
    lease: Lease,
    { without, network = this.#spec.network }: SuccessorOptions,
  ): Promise<DockerSandbox | { readonly refused: string }> {
    await this.killAgents();
    const [made, found] = await Promise.allSettled([this.#createNext(lease, network), this.#difference()]);
    if (made.status === "rejected") throw made.reason;
    try {
      if (found.status === "rejected") throw found.reason;
      const { paths, removed } = carriedWithout(found.value, without);
      const refused = await this.#carry(made.value, paths, removed);
      if (refused === undefined) return made.value;
      await made.value.end("it did not take the changes");
      return { refused };
    } catch (error) {
      await made.value.end("it did not get the changes");
      if (error instanceof Failure && error.name === "SandboxBroken") return { refused: error.message };
      throw error;
    }
  }

  /** Services and what they hold stay: the next one comes onto their network. */
  #createNext(lease: Lease, network: SandboxSpec["network"]): Promise<DockerSandbox> {
    const { services, ...spec } = this.#spec;
    if (services === undefined) return this.#place.createAnother({ ...spec, network }, lease, undefined);
    return this.#place.createAnother(spec, lease, this.#place.container);
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

  async #end(reason: string): Promise<void> {
    clearTimeout(this.#timer);
    const { client, door, engine, container, onEnd } = this.#place;
    client.lose(lost(nameOf(this.lease), reason));
    door.close();
    await this.#place.removeServices();
    await removeContainer(engine, container);
    onEnd();
  }

  /** The driver's own timer; the daemon has one too, should the driver hang. */
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

  async #difference(): Promise<Difference> {
    const { engine, container, client, placed, listImage } = this.#place;
    const answer = await engine.call("GET", `/containers/${container}/changes`);
    const listed = EngineChanges.safeParse(answer.value);
    if (answer.status !== 200 || !listed.success) {
      await client.call({ op: "status" }); // a sandbox that is lost says why
      throw new Failure("SandboxUnavailable", "the container engine does not list changes", {
        retryable: true,
      });
    }
    const changes = listed.data ?? [];
    const before: Before = { image: await listImage(), placed };
    const paths = [...new Set([...changes.map(({ Path }) => Path), ...placed.keys()])].filter(
      path => !isOfEngine(path),
    );
    return compareFiles(changes, await describePaths(client, paths), before);
  }

  /** Piece by piece, however much it is. @returns why it was not taken */
  async #carry(
    to: DockerSandbox,
    paths: readonly string[],
    removed: readonly string[],
  ): Promise<string | undefined> {
    const [from, into] = [this.#place.client, to.#place.client];
    const transfer = randomUUID();
    const limitBytes = Number.MAX_SAFE_INTEGER;
    for (let isFirst = true; ; isFirst = false) {
      const download = isFirst
        ? await from.call({ op: "download", transfer, folder: "/", paths: [...paths], limitBytes })
        : await from.call({ op: "download-more", transfer });
      const { state, refused } = download.value;
      if (state !== "more" && state !== "done") return refused ?? "its files cannot be read";
      const isLast = state === "done";
      const lists = { emptied: [], removed: [...removed], keepOwners: true };
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

/** So many at a time that question and answer fit into frames. */
const PATHS_AT_ONCE = 2_000;

export async function describePaths(
  client: DaemonClient,
  paths: readonly string[],
): Promise<ReadonlyMap<string, Described>> {
  const described = new Map<string, Described>();
  for (let start = 0; start < paths.length; start += PATHS_AT_ONCE) {
    const some = paths.slice(start, start + PATHS_AT_ONCE);
    const { value } = await client.call({ op: "describe", paths: some });
    for (const [index, path] of some.entries()) {
      const entry = value.entries[index];
      if (entry) described.set(path, entry);
    }
  }
  return described;
}
