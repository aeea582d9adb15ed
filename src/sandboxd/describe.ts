// Describes paths of the sandbox, and lists its whole root.
import { type BigIntStats, lstatSync } from "node:fs";
import { hasCode } from "../files/file-errors.ts";
import { pathOfText, readNames, readTarget } from "./path-text.ts";
import type { Described, FileKind, ListedEntry, Listing } from "./protocol.ts";
import { Refusal } from "./refusal.ts";

/** @returns null where nothing is */
export function describe(path: string): Described | null {
  const stats = statsOf(path);
  if (stats === undefined) return null;
  const [, kind, mode, uid, gid, changed, inode] = listed(path, stats);
  return { kind, mode, uid, gid, changed, inode };
}

/** @returns "" where the link is gone meanwhile */
export function targetOf(link: string): string {
  try {
    return readTarget(link);
  } catch {
    return "";
  }
}

/**
 * Every path of the root's own file system. Mounts are left out: they are of other ones.
 *
 * @throws Refusal where folders are deeper than any path
 */
export function listRoot(): Listing {
  const root = statsOf("/");
  const listing: Listing = [];
  const waiting = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const name of namesIn(folder === "" ? "/" : folder)) {
      const path = `${folder}/${name}`;
      const stats = statsOf(path, refuseTooDeep);
      // Of an overlay only folders are sure to tell the number of its own device (overlayfs.rst, "Inode properties").
      if (stats === undefined || (stats.isDirectory() && stats.dev !== root?.dev)) continue;
      listing.push(listed(path, stats));
      if (stats.isDirectory()) waiting.push(path);
    }
  }
  return listing;
}

export function listPaths(paths: readonly string[]): Listing {
  return paths.flatMap(path => {
    const stats = statsOf(path);
    return stats === undefined ? [] : [listed(path, stats)];
  });
}

function listed(path: string, stats: BigIntStats): ListedEntry {
  const { mode, uid, gid, ctimeNs, ino } = stats;
  const numbers = [Number(mode & 0o7777n), Number(uid), Number(gid)] as const;
  return [path, kindOf(stats), ...numbers, `${ctimeNs}`, `${ino}`];
}

function kindOf(stats: BigIntStats): FileKind {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  return stats.isSymbolicLink() ? "link" : "other";
}

/** @returns undefined for nothing, or a file where its folder should be, unless that is refused */
function statsOf(path: string, refuse?: (error: unknown) => void): BigIntStats | undefined {
  try {
    return lstatSync(pathOfText(path), { bigint: true });
  } catch (error) {
    refuse?.(error);
    return undefined;
  }
}

function refuseTooDeep(error: unknown): void {
  if (hasCode(error, "ENAMETOOLONG")) throw new Refusal("there are folders deeper than any path");
}

function namesIn(folder: string): string[] {
  try {
    return readNames(folder);
  } catch {
    return [];
  }
}
