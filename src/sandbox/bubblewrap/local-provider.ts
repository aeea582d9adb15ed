// Sandboxes that are kept by this very process (keeper.ts).
import { closeSync } from "node:fs";
import { Failure, InputError, InvariantError } from "../../failure/errors.ts";
import { removeLeftovers } from "../../store/temporary-file.ts";
import type { Lease, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { packFiles } from "../tar.ts";
import { BubblewrapSandbox } from "./bubblewrap-sandbox.ts";
import { assertEnvironment } from "./command-words.ts";
import { toolkitTool } from "./enter.ts";
import { type Host, openHost } from "./host.ts";
import { hostImageArguments } from "./host-image.ts";
import { type Init, startInit } from "./init.ts";
import { isolationProblem } from "./isolation.ts";
import { removeEmptyFolder, sweepLeases, writeLease } from "./lease-files.ts";
import { NamedPipes } from "./named-pipes.ts";
import { assertRootImage, rootImageArguments, rootImageLauncher } from "./root-image.ts";

/**
 * @param runParent folder for toolkit, pipes and leases; the machine's folder for temporary files when not given
 * @throws InputError when this machine lacks a program that sandboxes need
 */
export function createLocalProvider(runParent?: string): LocalProvider {
  return new LocalProvider(openHost(runParent));
}

export class LocalProvider implements SandboxProvider {
  readonly name = "bubblewrap";
  readonly #host: Host;
  readonly #pipes: NamedPipes;
  readonly #sandboxes = new Map<string, Promise<BubblewrapSandbox>>();
  /** A machine that has isolated once can: later refusals are a lack of something, not of a permission. */
  #hasIsolated = false;
  #isDisposed = false;

  constructor(host: Host) {
    this.#host = host;
    this.#pipes = new NamedPipes(host);
  }

  /** The same lease and generation twice is the same sandbox. */
  async create(spec: SandboxSpec, lease: Lease): Promise<BubblewrapSandbox> {
    if (this.#isDisposed) throw new InvariantError("the provider is disposed of", { lease: lease.id });
    const key = JSON.stringify([lease.id, lease.generation]);
    const existing = this.#sandboxes.get(key);
    if (existing !== undefined) return existing;
    const created = this.#create(spec, lease, () => this.#sandboxes.delete(key));
    this.#sandboxes.set(key, created);
    created.catch(() => this.#sandboxes.delete(key));
    return created;
  }

  /** Always undefined: these sandboxes end with the process that made them. */
  async adopt(): Promise<undefined> {
    return undefined;
  }

  async sweep(): Promise<readonly string[]> {
    const now = Date.now();
    const own = await Promise.all(
      [...this.#sandboxes.values()].map(sandbox => sandbox.catch(() => undefined)),
    );
    const late = own.filter(sandbox => sandbox !== undefined && sandbox.lease.deadlineMs <= now);
    await Promise.all(late.map(sandbox => sandbox?.end("its deadline passed")));
    const others = sweepLeases(this.#host.runFolder.leases, now);
    await removeLeftovers(this.#host.runFolder.pipes);
    return [...late.flatMap(sandbox => sandbox?.lease.id ?? []), ...others];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const own = [...this.#sandboxes.values()];
    await Promise.all(
      own.map(sandbox =>
        sandbox.then(
          made => made[Symbol.asyncDispose](),
          () => undefined,
        ),
      ),
    );
    await this.#pipes.remove();
    const { leases, pipes } = this.#host.runFolder;
    for (const folder of [leases, pipes]) removeEmptyFolder(folder);
  }

  async #create(spec: SandboxSpec, lease: Lease, onEnd: () => void): Promise<BubblewrapSandbox> {
    assertSpec(spec);
    const init = await this.#startInit(spec);
    const removeLease = writeLease(this.#host.runFolder.leases, lease, init);
    const commandHost = { host: this.#host, pipes: this.#pipes };
    const sandbox = new BubblewrapSandbox(spec, lease, init, commandHost, () => {
      removeLease();
      onEnd();
    });
    try {
      if (spec.image.kind === "root") await prepareRoot(sandbox, spec);
      if (spec.image.files.length > 0) await placeFiles(sandbox, spec);
      return sandbox;
    } catch (error) {
      await sandbox.end("it could not be set up");
      throw error;
    }
  }

  async #startInit(spec: SandboxSpec): Promise<Init> {
    const { image } = spec;
    if (image.kind === "root") assertRootImage(image.folder, this.#host);
    const bwrap =
      image.kind === "host" ? hostImageArguments(this.#host, spec) : rootImageArguments(this.#host, spec);
    const launcher = image.kind === "host" ? [] : rootImageLauncher(this.#host, image.folder, spec);
    try {
      const init = await startInit(this.#host, launcher, bwrap);
      this.#hasIsolated = true;
      return init;
    } catch (error) {
      if (error instanceof Failure && !this.#hasIsolated) throw isolationProblem(error.message);
      throw error;
    } finally {
      for (const fd of bwrap.fileDescriptors) closeSync(fd);
    }
  }
}

/** What a Harbor task expects to find, whatever the image. `/tmp` may be missing in an image made by hand. */
const ROOT_FOLDERS = ["/tmp", "/root", "/logs/agent", "/logs/artifacts", "/logs/verifier"];
const PREPARE_ROOT = `${toolkitTool("mkdir")} -p -- "$@" && exec /bin/sh -c :`;

/** Makes the folders from inside, where a link of the image leads nowhere else. @throws InputError */
async function prepareRoot(sandbox: BubblewrapSandbox, { workdir, image }: SandboxSpec): Promise<void> {
  const { end, said } = await sandbox.runTool(PREPARE_ROOT, [...ROOT_FOLDERS, workdir]);
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

/** @throws InputError */
function assertSpec({ workdir, env, diskBytes, image }: SandboxSpec): void {
  assertEnvironment(env, "environment of the sandbox");
  const paths = [workdir, ...image.files.map(file => file.to)];
  for (const path of paths) {
    if (path.startsWith("/") && !path.includes("\0") && !path.split("/").includes("..")) continue;
    throw new InputError({
      what: "not a path of a sandbox",
      where: JSON.stringify(path),
      expected: "an absolute path without ..",
      fix: "write it out from /",
    });
  }
  if (!Number.isSafeInteger(diskBytes) || diskBytes <= 0)
    throw new InvariantError("room is whole bytes", { diskBytes });
}
