// Everything about this machine that sandboxes need, found out once.
import { tmpdir } from "node:os";
import { InputError } from "../../failure/errors.ts";
import { findHostTools, type HostTools } from "./host-tools.ts";
import { openRunFolder, type RunFolder } from "./run-folder.ts";
import { type SandboxUser, sandboxUser } from "./sandbox-user.ts";
import { openToolkit } from "./toolkit.ts";

const OTHER_PARENT = "/var/tmp";

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
  const tools = findHostTools();
  const user = sandboxUser();
  const open = (parent: string): Host => {
    const runFolder = openRunFolder(parent);
    return { tools, user, runFolder, toolkit: openToolkit(runFolder.path, tools, user) };
  };
  if (runParent !== undefined) return open(runParent);
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
