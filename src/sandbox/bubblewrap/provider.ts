// Sandboxes on this Linux machine: bubblewrap's namespaces, no daemon, no root. About as cheap as a process.
import { Failure, InputError, InvariantError } from "../../failure/errors.ts";
import { removeLeftovers } from "../../files/temporary-file.ts";
import { assertSpec } from "../assert-spec.ts";
import type { ProcessId } from "../processes.ts";
import type { Lease, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { SandboxRegistry } from "../sandbox-registry.ts";
import { packFiles } from "../tar.ts";
import { BubblewrapSandbox } from "./bubblewrap-sandbox.ts";
import type { EntryProcess } from "./entry-process.ts";
import { type Host, openHost } from "./host.ts";
import { hostImageSetup } from "./host-image.ts";
import { isolationProblem } from "./isolation.ts";
import { removeEmptyFolder, sweepLeases, writeLease } from "./lease-files.ts";
import { assertRootImage, ROOT_FOLDERS, rootImageSetup } from "./root-image.ts";
import type { Entrance } from "./run-command.ts";
import { Spawner } from "./spawner.ts";
import { HostedTerminals } from "./terminals/hosted-terminals.ts";

/**
 * @param runParent folder for toolkit, pipes and leases; the machine's folder for temporary files when not given
 * @throws InputError when this machine lacks a program that sandboxes need
 */
export function createBubblewrapProvider(runParent?: string): BubblewrapProvider {
  return new BubblewrapProvider(openHost(runParent));
}

export class BubblewrapProvider implements SandboxProvider {
  readonly name = "bubblewrap";
  readonly #host: Host;
  #spawner: Spawner;
  readonly #terminals = new HostedTerminals();
  readonly #sandboxes = new SandboxRegistry<BubblewrapSandbox>();
  /** A machine that has isolated once can: later refusals are a lack of something, not of a permission. */
  #hasIsolated = false;

  constructor(host: Host) {
    this.#host = host;
    this.#spawner = new Spawner(host);
  }

  /** The same lease and generation twice is the same sandbox. */
  async create(spec: SandboxSpec, lease: Lease): Promise<BubblewrapSandbox> {
    return this.#sandboxes.once(lease, () => this.#create(spec, lease, () => this.#sandboxes.forget(lease)));
  }

  /** Always undefined: these sandboxes end with the process that made them. */
  async adopt(): Promise<undefined> {
    return undefined;
  }

  async sweep(): Promise<readonly string[]> {
    const now = Date.now();
    const late = await this.#sandboxes.endLate(now);
    const others = sweepLeases(this.#host.runFolder.leases, now);
    await removeLeftovers(this.#host.runFolder.pipes);
    return [...late, ...others];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandboxes.endAll();
    await Promise.all([this.#spawner.close(), this.#terminals[Symbol.asyncDispose]()]);
    const { leases, pipes } = this.#host.runFolder;
    for (const folder of [leases, pipes]) removeEmptyFolder(folder);
  }

  async #create(spec: SandboxSpec, lease: Lease, onEnd: () => void): Promise<BubblewrapSandbox> {
    assertBubblewrapSpec(spec);
    const entrance = await this.#open(spec);
    const first = await entrance.entryProcess.first;
    const removeLease = await this.#leased(lease, first, entrance.entryProcess);
    const sandbox = new BubblewrapSandbox(
      { spec, lease },
      {
        ...{ host: this.#host, terminals: this.#terminals, first, entrance },
        create: (other, otherLease) => this.create(other, otherLease),
      },
      () => {
        removeLease();
        onEnd();
      },
    );
    try {
      if (spec.image.kind === "root") await prepareRoot(sandbox, spec);
      if (spec.image.files.length > 0) await placeFiles(sandbox, spec);
      if (spec.image.kind === "root" && spec.image.entrypoint !== undefined)
        await sandbox.startEntrypoint(spec.image.entrypoint);
      return sandbox;
    } catch (error) {
      await sandbox.end("it could not be set up");
      throw error;
    }
  }

  /** @returns removes the lease's file */
  async #leased(lease: Lease, first: ProcessId, entryProcess: EntryProcess): Promise<() => void> {
    try {
      return writeLease(this.#host.runFolder.leases, lease, first);
    } catch (error) {
      await entryProcess.end(); // nobody else knows of it
      const detail = `no file for a lease: ${error}`;
      throw new Failure("SandboxUnavailable", detail, { retryable: true, cause: error });
    }
  }

  async #open(spec: SandboxSpec): Promise<Entrance> {
    const { image } = spec;
    if (image.kind === "docker")
      throw new InvariantError("such an image is refused before", { reference: image.reference });
    if (image.kind === "root") assertRootImage(image.folder, this.#host);
    const setup =
      image.kind === "host" ? hostImageSetup(this.#host, spec) : rootImageSetup(this.#host, image, spec);
    const spawner = await this.#livingSpawner();
    try {
      const entryProcess = await spawner.open(setup);
      this.#hasIsolated = true;
      return { spawner, entryProcess };
    } catch (error) {
      // One that is lost was killed while it started, which says nothing of what the machine allows.
      const isRefused = error instanceof Failure && error.name === "SandboxUnavailable";
      if (isRefused && !this.#hasIsolated && !spawner.isGone) throw isolationProblem(error.message);
      throw error;
    }
  }

  /** Should it have ended by accident, its sandboxes are lost and the next have another. */
  async #livingSpawner(): Promise<Spawner> {
    const spawner = this.#spawner;
    if (!spawner.isGone) return spawner;
    this.#spawner = new Spawner(this.#host);
    await spawner.close(); // its pipes
    return this.#spawner;
  }
}

/** Makes the folders from inside, where a link of the image leads nowhere else. @throws InputError */
async function prepareRoot(sandbox: BubblewrapSandbox, { workdir, image }: SandboxSpec): Promise<void> {
  const { end, said } = await sandbox.runTool(["/bin/sh", "-c", ":"], {
    cwd: "/",
    made: [...ROOT_FOLDERS, workdir],
  });
  if (end.kind === "exited" && end.exitCode === 0) return;
  throw new InputError({
    what: `the image cannot be used: ${said}`,
    where: image.kind === "root" ? image.folder : workdir,
    expected: "a root file system with /bin/sh, its libraries, and room for the working directory",
    fix: "unpack the image again, with all its layers",
  });
}

async function placeFiles(sandbox: BubblewrapSandbox, { image: { files } }: SandboxSpec): Promise<void> {
  const result = await sandbox.upload(await packFiles(files), "/");
  if ("unpacked" in result) return;
  throw new InputError({
    what: `files of the task cannot be placed in its sandbox: ${result.refused}`,
    where: files.map(file => file.to).join(", "),
    expected: "folders that can be written, and room for the files (diskBytes)",
    fix: "copy them elsewhere, or raise the task's storage",
  });
}

/** Refuses what only a container engine can do; nothing is left out in silence. @throws InputError */
function assertBubblewrapSpec(spec: SandboxSpec): void {
  assertSpec(spec);
  const { image, network, user, memoryBytes, cpus, services } = spec;
  const wanted = [
    image.kind === "docker" && `the image ${image.reference}`,
    network === "public" && `the network ${JSON.stringify(network)}`,
    user !== undefined && !["root", "0"].includes(user) && `the user ${JSON.stringify(user)}`,
    memoryBytes !== undefined && "a limit of memory",
    cpus !== undefined && "a limit of processors",
    services !== undefined && "services beside it",
  ].filter(text => text !== false);
  if (wanted.length === 0) return;
  throw new InputError({
    what: `bubblewrap cannot give a sandbox ${wanted.join(", nor ")}`,
    where: "specification of a sandbox",
    expected:
      "this machine's programs or a folder as image, root as the one user, no network or this machine's, no limits",
    fix: "use the docker provider, or remove it from the task",
  });
}
