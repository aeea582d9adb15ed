// Lists the files and symbolic links of a folder, in an order that does not depend on the file system. It lists no
// folders, because neither git nor the store keeps empty ones.
import { lstatSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { listUserFolder } from "../files/user-files.ts";

export type FolderEntry = {
  /** Relative to the listed folder, with "/" between names. */
  readonly path: string;
} & (
  | { readonly kind: "file"; readonly sizeBytes: number; readonly isExecutable: boolean }
  | { readonly kind: "link"; readonly target: string }
);

const OWNER_EXECUTES = 0o100;

/**
 * @returns entries sorted by path (by UTF-16 code units); links are listed, not followed
 * @throws InputError for sockets, pipes and devices
 */
export function listFolder(folder: string): readonly FolderEntry[] {
  const entries: FolderEntry[] = [];
  collect(folder, "", entries);
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

// Synchronous calls: a task folder holds a dozen small files, and a trip through the thread pool costs more than each.
function collect(folder: string, prefix: string, entries: FolderEntry[]): void {
  for (const item of listUserFolder(join(folder, prefix), {
    what: "a folder of the task",
    expected: "a folder",
  })) {
    const path = `${prefix}${item.name}`;
    const absolute = join(folder, path);
    if (item.isDirectory()) {
      collect(folder, `${path}/`, entries);
    } else if (item.isSymbolicLink()) {
      entries.push({ path, kind: "link", target: readlinkSync(absolute) });
    } else if (item.isFile()) {
      const { size, mode } = lstatSync(absolute);
      entries.push({ path, kind: "file", sizeBytes: size, isExecutable: (mode & OWNER_EXECUTES) !== 0 });
    } else {
      throw new InputError({
        what: "neither file, folder nor symbolic link",
        where: absolute,
        expected: "a folder whose content can be copied",
        fix: "remove it",
      });
    }
  }
}
