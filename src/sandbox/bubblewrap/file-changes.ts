// Compares an archive of a sandbox's changes with its image, and makes of it what another sandbox of the image has to be
// given.
import type { FileChange } from "../sandbox.ts";
import { carriedPaths, isAtOrBelow } from "../successor.ts";
import { joinTarEntries, type TarEntry } from "../tar-entries.ts";
import type { ImageContent, ImageEntry } from "./image-content.ts";

export interface Comparison {
  readonly changes: readonly FileChange[];
  /** Entries that are there, whether changed or not. */
  readonly present: readonly TarEntry[];
  /** Paths of the image that are gone, or stand in the way of something of another kind. */
  readonly cleared: readonly string[];
}

/** @param isWhole the archive holds the whole root, else only what an overlay's upper folder holds */
export function compareWithImage(
  entries: readonly TarEntry[],
  image: ImageContent,
  { isWhole }: { readonly isWhole: boolean },
): Comparison {
  const isMount = (path: string): boolean => image.mounts.some(mount => isAtOrBelow(path, mount));
  const inside = entries.filter(({ path }) => path !== "" && !isMount(path));
  const present = inside.filter(entry => !entry.isWhiteout || isWhole);
  const here = new Map(present.map(entry => [entry.path, entry]));
  const gone = new Set<string>();
  if (!isWhole) {
    for (const { path, isWhiteout, isOpaque } of inside) {
      if (isWhiteout) gone.add(path);
      // An overlay marks every new folder so, whether the image has one there or not.
      if (isWhiteout || isOpaque)
        for (const child of image.below(path)) if (!here.has(child)) gone.add(child);
    }
  }
  // What every sandbox starts with lies where changes lie: it is there, or it was removed.
  for (const path of image.made) {
    const holdsMount = image.mounts.some(mount => mount.startsWith(`${path}/`));
    if (!here.has(path) && !isMount(path) && !holdsMount) gone.add(path);
  }
  const changes: FileChange[] = [];
  const cleared: string[] = [];
  for (const path of gone) {
    const before = image.entry(path);
    if (before === undefined) continue;
    changes.push({ path: `/${path}`, change: "deleted", kind: before.kind });
    cleared.push(path);
  }
  for (const entry of present) {
    const before = image.entry(entry.path);
    const source = sourceOf(entry, here);
    const kind = source?.kind === "link" ? "link" : kindOf(entry);
    const path = `/${entry.path}`;
    const found = { path, kind, ...(kind === "link" && { target: source?.target }) };
    if (before === undefined) changes.push({ ...found, change: "added" });
    else if (isModified(entry, before, here)) changes.push({ ...found, change: "modified" });
    if (before !== undefined && before.kind !== kind) cleared.push(entry.path);
  }
  changes.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { changes, present, cleared };
}

/** An archive to unpack over a fresh sandbox, and paths to remove from it before. */
export interface Carried {
  readonly tar: Uint8Array;
  readonly removed: readonly string[];
}

/**
 * @param without absolute paths
 * @returns undefined when a hard link would be cut off from its content: then the archive has to be made without any
 */
export function carriedChanges(
  { present, cleared }: Comparison,
  without: readonly string[],
): Carried | undefined {
  const paths = cleared.map(path => `/${path}`);
  const { isKept: isKeptPath, removed } = carriedPaths(paths, without);
  const isKept = (path: string): boolean => isKeptPath(`/${path}`);
  const entries = present.filter(entry => isKept(entry.path));
  if (entries.some(entry => entry.kind === "hard-link" && !isKept(entry.target))) return undefined;
  return { tar: joinTarEntries(entries), removed };
}

function kindOf({ kind }: TarEntry): FileChange["kind"] {
  return kind === "hard-link" ? "file" : kind;
}

/** A hard link may be one to a symbolic link. @returns undefined when the archive does not hold it */
function sourceOf(entry: TarEntry, here: ReadonlyMap<string, TarEntry>): TarEntry | undefined {
  return entry.kind === "hard-link" ? here.get(entry.target) : entry;
}

function isModified(entry: TarEntry, before: ImageEntry, here: ReadonlyMap<string, TarEntry>): boolean {
  const source = sourceOf(entry, here);
  if (source === undefined || kindOf(source) !== before.kind) return true;
  if (before.mode !== undefined && source.mode !== before.mode) return true;
  if (before.kind === "folder") return false;
  if (before.kind === "link") return source.target !== before.target;
  const { mtime, content } = before;
  if (mtime !== undefined && Math.floor(source.mtime) !== Math.floor(mtime)) return true;
  return content === undefined || source.isSparse || !Buffer.from(content).equals(source.content);
}
