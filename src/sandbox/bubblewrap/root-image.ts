// A sandbox over a folder with a whole root file system, below an overlay that takes all changes (spawner/).
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../../failure/errors.ts";
import type { RootImage, SandboxSpec } from "../sandbox.ts";
import { type BwrapSetup, ISOLATION_OPTIONS, systemOptions } from "./bwrap-options.ts";
import type { Host } from "./host.ts";
import { TOOLKIT_MOUNT } from "./toolkit.ts";

/** Where bwrap mounts something: a link there would lead it out of the image. */
const MOUNT_POINTS = ["proc", "dev", TOOLKIT_MOUNT.slice(1)];

/** What a Harbor task expects to find, whatever the image. `/tmp` may be missing in an image made by hand. */
export const ROOT_FOLDERS = ["/tmp", "/root", "/logs/agent", "/logs/artifacts", "/logs/verifier"];

export function rootImageSetup(
  host: Host,
  { folder, layers = [], changes }: RootImage,
  spec: SandboxSpec,
): BwrapSetup {
  const { mountPoint } = host.runFolder;
  return {
    options: [
      ...ISOLATION_OPTIONS,
      ...["--bind", join(mountPoint, "root"), "/"],
      ...systemOptions(host, spec),
    ],
    files: [],
    overlay: { layers: [...layers, folder], mountPoint, changes },
    sizeBytes: spec.diskBytes,
    network: spec.network,
  };
}

/** @throws InputError when the folder is no image, or one of another user */
export function assertRootImage(folder: string, { user }: Host): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (!folder.startsWith("/") || !stats?.isDirectory()) {
    throw new InputError({
      what: "the image is not a folder",
      where: folder,
      expected: "the absolute path of a folder that holds a root file system",
      fix: "build or unpack the image there",
    });
  }
  const uid = user?.uid ?? process.getuid?.();
  const gid = user?.gid ?? process.getgid?.();
  if (stats.uid !== uid) {
    throw new InputError({
      what: `the image belongs to user ${stats.uid}`,
      where: folder,
      expected: `user ${uid}, the only one that sandboxes have here: as root inside, it must own the image's files`,
      fix: `unpack it as that user, or: chown -hR ${uid}:${gid} ${folder}`,
    });
  }
  for (const name of MOUNT_POINTS) {
    const entry = lstatSync(join(folder, name), { throwIfNoEntry: false });
    if (entry === undefined || entry.isDirectory()) continue;
    throw new InputError({
      what: "something is in the place of a mount",
      where: join(folder, name),
      expected: "a folder, or nothing",
      fix: "remove it from the image",
    });
  }
}
