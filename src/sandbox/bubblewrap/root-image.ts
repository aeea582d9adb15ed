// A sandbox over a folder with a whole root file system. An overlay in the sandbox's own mount namespace takes all
// changes, in memory, so neither the folder nor the machine's mounts are ever touched.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../../failure/errors.ts";
import type { SandboxSpec } from "../sandbox.ts";
import { ISOLATION_OPTIONS, systemOptions } from "./bwrap-options.ts";
import type { Host } from "./host.ts";
import type { BwrapArguments } from "./init.ts";
import { TOOLKIT_MOUNT } from "./toolkit.ts";

/** Where bwrap mounts something: a link there would lead it out of the image. */
const MOUNT_POINTS = ["proc", "dev", TOOLKIT_MOUNT.slice(1)];

/**
 * Mounts the overlay and goes on as bwrap. The lower folder is `.`, because in the options of an overlay a path with a
 * comma or colon would be something else. `userxattr` is what a user namespace may use (overlayfs, Linux 5.11).
 */
const MOUNT_OVERLAY = `set -e
mount=$1 image=$2 point=$3 size=$4
shift 4
"$mount" -t tmpfs -o "size=$size,mode=0755" tmpfs "$point"
mkdir "$point/upper" "$point/work" "$point/root"
cd "$image"
"$mount" -t overlay -o "userxattr,lowerdir=.,upperdir=$point/upper,workdir=$point/work" overlay "$point/root"
cd /
exec "$@"`;

/** Words that run the words after them with the image mounted, for `startInit`. */
export function rootImageLauncher(
  { tools, runFolder }: Host,
  folder: string,
  spec: SandboxSpec,
): readonly string[] {
  return [
    ...[tools.unshare, "--user", "--map-root-user", "--mount", tools.sh, "-c", MOUNT_OVERLAY, "sh"],
    ...[tools.mount, folder, runFolder.mountPoint, `${spec.diskBytes}`],
  ];
}

export function rootImageArguments(host: Host, spec: SandboxSpec): BwrapArguments {
  return {
    options: [
      ...ISOLATION_OPTIONS,
      ...["--bind", join(host.runFolder.mountPoint, "root"), "/"],
      ...systemOptions(host, spec),
    ],
    fileDescriptors: [],
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
