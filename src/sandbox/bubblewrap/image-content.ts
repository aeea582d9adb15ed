// What an image has at a path before anybody worked in a sandbox of it: the folders and small files that a fresh root is
// made of, or the image's own folder, and over both the files of the spec.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { FileChange, SandboxSpec } from "../sandbox.ts";
import { packFiles } from "../tar.ts";
import { readTarEntries, type TarEntry } from "../tar-entries.ts";
import { hostImageContent } from "./host-image.ts";
import { ROOT_FOLDERS } from "./root-image.ts";

/** The known facts of an image's entry; a missing one is not compared. */
export interface ImageEntry {
  readonly kind: FileChange["kind"];
  readonly mode?: number;
  readonly mtime?: number;
  readonly content?: Uint8Array;
  readonly target?: string;
}

export interface ImageContent {
  /** @param path as in an archive of the root */
  entry(path: string): ImageEntry | undefined;
  /** Paths that every sandbox of this kind starts with on the file system of its changes. */
  readonly made: readonly string[];
  /** Paths below a folder of the image's own, for one that was deleted or replaced. */
  below(path: string): readonly string[];
  /** Paths at and below which there are mounts, and no changes. */
  readonly mounts: readonly string[];
}

export async function imageContent(spec: SandboxSpec): Promise<ImageContent> {
  const { image, workdir } = spec;
  const entries = new Map<string, ImageEntry>();
  const addFolder = (path: string, mode?: number): void => {
    const names = path.split("/").filter(name => name !== "" && name !== ".");
    for (let length = 1; length <= names.length; length++) {
      const folder = names.slice(0, length).join("/");
      const isLast = length === names.length;
      if (!entries.has(folder) || isLast)
        entries.set(folder, { kind: "folder", ...(isLast && mode !== undefined && { mode }) });
    }
  };
  const own = image.kind === "host" ? hostImageContent() : { entries: [], mounts: ROOT_MOUNTS };
  for (const [path, entry] of own.entries) {
    addFolder(path.slice(0, Math.max(path.lastIndexOf("/"), 0)));
    entries.set(path, entry);
  }
  const folders = image.kind === "root" ? [...(image.layers ?? []), image.folder] : [];
  for (const path of image.kind === "root" ? [...ROOT_FOLDERS, workdir] : [workdir]) {
    // One that the image has keeps its mode.
    if (lookUp(folders, plain(path)) === undefined) addFolder(path, 0o755);
  }
  const packed = image.files.length === 0 ? [] : readTarEntries(await packFiles(image.files));
  for (const entry of packed) {
    addFolder(entry.path.slice(0, Math.max(entry.path.lastIndexOf("/"), 0)));
    entries.set(entry.path, placedEntry(entry));
  }
  return {
    entry: path => entries.get(path) ?? lookUp(folders, path),
    made: [...entries.keys()],
    below: path => [...new Set(folders.flatMap(folder => listBelow(folder, path)))],
    mounts: own.mounts,
  };
}

const ROOT_MOUNTS = ["proc", "dev", "sys", ".t1"];

function plain(path: string): string {
  return path
    .split("/")
    .filter(name => name !== "" && name !== ".")
    .join("/");
}

function placedEntry({ kind, mode, mtime, content, target }: TarEntry): ImageEntry {
  if (kind === "folder") return { kind, mode };
  if (kind === "link") return { kind, target };
  return { kind: "file", mode, mtime, content };
}

/** A path of an image, whose upper layers come first; a whiteout in one of them hides what lies below. */
function lookUp(folders: readonly string[], path: string): ImageEntry | undefined {
  for (const folder of folders) {
    const found = lookUpIn(folder, path);
    if (found === "hidden") return undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** No link on the way is followed, it would lead out of the image. */
function lookUpIn(folder: string, path: string): ImageEntry | "hidden" | undefined {
  let at = folder;
  const names = path.split("/");
  for (const [index, name] of names.entries()) {
    at = join(at, name);
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    if (stats.isCharacterDevice() && stats.rdev === 0) return "hidden";
    if (index < names.length - 1) {
      if (!stats.isDirectory()) return "hidden";
      continue;
    }
    if (stats.isDirectory()) return { kind: "folder", mode: stats.mode & 0o7777 };
    // That it lies in the upper folder says that it was changed: nothing more is compared.
    return { kind: stats.isSymbolicLink() ? "link" : stats.isFile() ? "file" : "other" };
  }
  return undefined;
}

function listBelow(folder: string, path: string): readonly string[] {
  const top = lookUpIn(folder, path);
  if (top === undefined || top === "hidden" || top.kind !== "folder") return [];
  return readdirSync(join(folder, path), { withFileTypes: true }).flatMap(entry => {
    const child = `${path}/${entry.name}`;
    return entry.isDirectory() ? [child, ...listBelow(folder, child)] : [child];
  });
}
