// What is at paths of the sandbox, and what all of its root holds.
import { type BigIntStats, lstatSync } from "node:fs";
import { pathOfText, readNames, readTarget } from "./path-text.ts";
import type { Described, FileKind, Listing } from "./protocol.ts";

/** @returns null where nothing is */
export function describe(path: string): Described | null {
  const stats = statsOf(path);
  if (stats === undefined) return null;
  const kind = kindOf(stats);
  return {
    ...{ kind, mode: Number(stats.mode & 0o7777n), uid: Number(stats.uid), gid: Number(stats.gid) },
    changed: `${stats.ctimeNs}`,
    ...(kind === "folder" ? { names: namesIn(path) } : {}),
    ...(kind === "link" ? { target: targetOf(path) } : {}),
  };
}

/** @returns "" where the link is gone meanwhile */
export function targetOf(link: string): string {
  try {
    return readTarget(link);
  } catch {
    return "";
  }
}

/** Every path of the root's own file system. */
export function listRoot(): Listing {
  const listing: Listing = [];
  walkRoot((path, kind, { mode, uid, gid }) =>
    listing.push([path, kind, Number(mode & 0o7777n), Number(uid), Number(gid)]),
  );
  return listing;
}

/** Mounts are left out: they are of other file systems. */
export function walkRoot(visit: (path: string, kind: FileKind, stats: BigIntStats) => void): void {
  const root = statsOf("/");
  const waiting = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const name of namesIn(folder === "" ? "/" : folder)) {
      const path = `${folder}/${name}`;
      const stats = statsOf(path);
      // Of an overlay only folders are sure to tell the number of its own device (overlayfs.rst, "Inode properties").
      if (stats === undefined || (stats.isDirectory() && stats.dev !== root?.dev)) continue;
      visit(path, kindOf(stats), stats);
      if (stats.isDirectory()) waiting.push(path);
    }
  }
}

function kindOf(stats: BigIntStats): FileKind {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  return stats.isSymbolicLink() ? "link" : "other";
}

function statsOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(pathOfText(path), { bigint: true });
  } catch {
    return undefined; // nothing, or a file where its folder should be
  }
}

function namesIn(folder: string): string[] {
  try {
    return readNames(folder);
  } catch {
    return [];
  }
}
