// Sandboxes on this Linux machine: bubblewrap's namespaces, no daemon, no root. About as cheap as a process.
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRunFolder } from "../run-folder.ts";
import type {
  CapturedOutput,
  DownloadResult,
  ExecOptions,
  ExecResult,
  FileChange,
  Lease,
  Sandbox,
  SandboxProvider,
  SandboxSpec,
  SuccessorOptions,
  Terminal,
  TerminalOptions,
  TerminalView,
  UploadOptions,
  UploadResult,
} from "../sandbox.ts";
import { KeeperClient } from "./keeper-client.ts";

/**
 * Starts the process that keeps the sandboxes.
 *
 * @param runParent folder for toolkit, pipes and leases; the machine's folder for temporary files when not given
 * @throws InputError when this machine lacks something that sandboxes need
 */
export async function createBubblewrapProvider(runParent?: string): Promise<SandboxProvider> {
  const provider = new BubblewrapProvider(runParent);
  await provider.keeper();
  return provider;
}

class BubblewrapProvider implements SandboxProvider {
  readonly name = "bubblewrap";
  readonly #runParent: string | undefined;
  #keeper: Promise<KeeperClient> | undefined;
  readonly #sandboxes = new Map<string, KeptSandbox>();

  constructor(runParent: string | undefined) {
    this.#runParent = runParent;
  }

  /** The one that is there; should it have ended by accident, its sandboxes are lost and the next have another. */
  async keeper(): Promise<KeeperClient> {
    const current = this.#keeper;
    if (current !== undefined) {
      const keeper = await current.catch(() => undefined);
      if (keeper !== undefined && !keeper.isGone) return keeper;
      if (this.#keeper !== current) return this.keeper();
    }
    this.#keeper = openKeeper(this.#runParent);
    return this.#keeper;
  }

  async create(spec: SandboxSpec, lease: Lease): Promise<Sandbox> {
    const keeper = await this.keeper();
    return this.#kept(keeper, await keeper.call("create", [spec, lease]), lease);
  }

  #kept(keeper: KeeperClient, number: number, lease: Lease): KeptSandbox {
    const key = `${keeper.pid}/${number}`;
    const known = this.#sandboxes.get(key);
    if (known !== undefined) return known;
    const sandbox = new KeptSandbox(keeper, number, lease, {
      onEnd: () => this.#sandboxes.delete(key),
      keep: (other, otherLease) => this.#kept(keeper, other, otherLease),
    });
    this.#sandboxes.set(key, sandbox);
    return sandbox;
  }

  /** Always undefined: these sandboxes end with the process that made them. */
  async adopt(): Promise<undefined> {
    return undefined;
  }

  async sweep(): Promise<readonly string[]> {
    return (await this.keeper()).call("sweep", []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const keeper = await this.#keeper?.catch(() => undefined);
    if (keeper === undefined || keeper.isGone) return;
    try {
      await keeper.call("dispose", []);
    } finally {
      await keeper.close();
    }
  }
}

async function openKeeper(runParent: string | undefined): Promise<KeeperClient> {
  const keeper = new KeeperClient(compileCache());
  try {
    await keeper.call("open", [runParent]);
    return keeper;
  } catch (error) {
    await keeper.close();
    throw error;
  }
}

/**
 * Where Node keeps what it compiled, which starts the next keeper three times as fast. Code is loaded from there, so only
 * a folder that nobody else can write will do; else there is none.
 */
function compileCache(): string | undefined {
  try {
    return join(openRunFolder(tmpdir()).path, "compile-cache");
  } catch {
    return undefined; // sandboxes need such a folder too: the keeper says what is wrong with it
  }
}

interface KeptSandboxOwner {
  readonly onEnd: () => void;
  /** Another that the keeper has made. */
  readonly keep: (number: number, lease: Lease) => KeptSandbox;
}

class KeptSandbox implements Sandbox {
  readonly lease: Lease;
  readonly #keeper: KeeperClient;
  readonly #number: number;
  readonly #owner: KeptSandboxOwner;

  constructor(keeper: KeeperClient, number: number, lease: Lease, owner: KeptSandboxOwner) {
    this.#keeper = keeper;
    this.#number = number;
    this.lease = lease;
    this.#owner = owner;
  }

  exec(command: string, { signal, ...options }: ExecOptions): Promise<ExecResult> {
    return this.#keeper.call("exec", [this.#number, command, options], signal);
  }

  async terminal(options: TerminalOptions): Promise<Terminal> {
    return new KeptTerminal(this.#keeper, await this.#keeper.call("openTerminal", [this.#number, options]));
  }

  upload(tar: Uint8Array, folder: string, options?: UploadOptions): Promise<UploadResult> {
    return this.#keeper.call("upload", [this.#number, tar, folder, options]);
  }

  download(folder: string, limitBytes: number): Promise<DownloadResult> {
    return this.#keeper.call("download", [this.#number, folder, limitBytes]);
  }

  killAgents(): Promise<void> {
    return this.#keeper.call("killAgents", [this.#number]);
  }

  changedFiles(): Promise<readonly FileChange[]> {
    return this.#keeper.call("changedFiles", [this.#number]);
  }

  async successor(lease: Lease, options: SuccessorOptions): Promise<Sandbox | { readonly refused: string }> {
    const without = await options.without;
    const made = await this.#keeper.call("successor", [this.#number, lease, { ...options, without }]);
    return typeof made === "number" ? this.#owner.keep(made, lease) : made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#owner.onEnd();
    if (!this.#keeper.isGone) await this.#keeper.call("end", [this.#number]);
  }
}

class KeptTerminal implements Terminal {
  readonly closed: Promise<void>;
  readonly #keeper: KeeperClient;
  readonly #number: number;

  constructor(keeper: KeeperClient, number: number) {
    this.#keeper = keeper;
    this.#number = number;
    // A terminal whose keeper is gone is closed too.
    this.closed = keeper.call("closed", [number]).catch(() => undefined);
  }

  send(keys: string | Uint8Array): Promise<number> {
    return this.#keeper.call("send", [this.#number, keys]);
  }

  readNew(): Promise<CapturedOutput> {
    return this.#keeper.call("readNew", [this.#number]);
  }

  screen(): Promise<readonly string[]> {
    return this.#keeper.call("screen", [this.#number]);
  }

  view(): Promise<TerminalView> {
    return this.#keeper.call("view", [this.#number]);
  }

  resize(columns: number, rows: number): Promise<void> {
    return this.#keeper.call("resize", [this.#number, columns, rows]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#keeper.isGone) await this.#keeper.call("closeTerminal", [this.#number]);
  }
}
