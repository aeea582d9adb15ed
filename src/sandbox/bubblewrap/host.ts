// Everything about this machine that sandboxes need, found out once.
import { statfsSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { InputError } from "../../failure/errors.ts";
import { makeFolders } from "../../files/make-folders.ts";
import { openOwnFolder, openRunFolder, type RunFolder } from "../run-folder.ts";
import { findHostTools, type HostTools } from "./host-tools.ts";
import { type SandboxUser, sandboxUser } from "./sandbox-user.ts";
import { openToolkit } from "./toolkit.ts";

const OTHER_PARENT = "/var/tmp";
const IN_MEMORY = "/dev/shm";
/** linux/magic.h */
const TMPFS_MAGIC = 0x01021994;

export interface Host {
  readonly tools: HostTools;
  /** undefined: sandboxed programs are the user of this process. */
  readonly user: SandboxUser | undefined;
  readonly runFolder: RunFolder;
  readonly toolkit: string;
}

/**
 * @param runParent folder for what drivers keep; when it is not given, the machine's own for temporary files, and another
 * where programs from there cannot be run (noexec, or a private folder of root)
 * @throws InputError saying what this machine lacks
 */
export function openHost(runParent?: string): Host {
  if (process.platform !== "linux") {
    throw new InputError({
      what: `bubblewrap sandboxes need Linux, this is ${process.platform}`,
      fix: "run on Linux, or in a Linux virtual machine",
    });
  }
  assertKernel();
  const tools = findHostTools();
  const user = sandboxUser();
  const open = (parent: string): Host => {
    const runFolder = openRunFolder(parent);
    return { tools, user, runFolder, toolkit: openToolkit(runFolder.path, tools, user) };
  };
  if (runParent !== undefined) return open(runParent);
  const host = openFirst(open);
  const pipes = pipesInMemory();
  return pipes === undefined ? host : { ...host, runFolder: { ...host.runFolder, pipes } };
}

function openFirst(open: (parent: string) => Host): Host {
  try {
    return open(tmpdir());
  } catch (error) {
    try {
      return open(OTHER_PARENT);
    } catch {
      throw error; // about the folder that people know
    }
  }
}

/** A command takes two or three pipes; on a disk making and removing them costs three times as much. */
function pipesInMemory(): string | undefined {
  try {
    if (statfsSync(IN_MEMORY).type !== TMPFS_MAGIC) return undefined;
    const folder = join(openOwnFolder(IN_MEMORY), "pipes");
    makeFolders(folder, { mode: 0o755 });
    return folder;
  } catch {
    return undefined; // there is none, or it is not for us
  }
}

/** Architectures whose system call numbers the spawner knows. */
const MACHINES = ["x64", "arm64"];
/** close_range (5.9), setns by a process descriptor (5.8), overlays in a user namespace (5.11). */
const OLDEST_KERNEL = [5, 11] as const;

/** @throws InputError */
export function assertKernel(machine: string = process.arch, version = release()): void {
  if (!MACHINES.includes(machine)) {
    throw new InputError({
      what: `bubblewrap sandboxes do not run on ${machine}`,
      expected: MACHINES.join(" or "),
      fix: "use another machine, or add its system call numbers to spawner/kernel.pl",
    });
  }
  const [major = 0, minor = 0] = version.split(".").map(Number.parseFloat);
  const [oldestMajor, oldestMinor] = OLDEST_KERNEL;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new InputError({
    what: `bubblewrap sandboxes need Linux ${OLDEST_KERNEL.join(".")} or later, this is ${version}`,
    fix: "update the kernel",
  });
}
