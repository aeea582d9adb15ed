// The folder in which this user's sandbox drivers keep what must outlive a call: the toolkit, leases, named pipes.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { makeFolders } from "../files/make-folders.ts";

export interface RunFolder {
  readonly path: string;
  /** One folder per driver process, with one file per sandbox. */
  readonly leases: string;
  /** One folder per driver process. */
  readonly pipes: string;
  /** An empty folder: what is mounted over it is seen inside a mount namespace only. */
  readonly mountPoint: string;
}

/**
 * @param parent a folder on a file system that allows programs to be run
 * @throws InputError when somebody else could have made it or could change it
 */
export function openRunFolder(parent: string): RunFolder {
  const path = openOwnFolder(parent);
  const folder = {
    path,
    leases: join(path, "leases"),
    pipes: join(path, "pipes"),
    mountPoint: join(path, "mount"),
  };
  for (const child of [folder.leases, folder.pipes, folder.mountPoint]) makeFolders(child, { mode: 0o755 });
  return folder;
}

/**
 * This user's folder below one that others may write too.
 *
 * @throws InputError when somebody else could have made it or could change it
 */
export function openOwnFolder(parent: string): string {
  const uid = process.getuid?.() ?? 0;
  const path = join(parent, `t1-${uid}`);
  // Passable for others, because the sandboxes of root run as another user. Nothing in it is secret.
  makeFolders(path, { mode: 0o755 });
  const stats = lstatSync(path);
  if (!stats.isDirectory() || stats.uid !== uid || (stats.mode & 0o022) !== 0) {
    throw new InputError({
      what: "the folder for sandboxes cannot be trusted",
      where: path,
      expected: `a folder of user ${uid} that nobody else may write`,
      fix: `remove it, or set TMPDIR to another folder`,
    });
  }
  return path;
}
