// What is at paths of the sandbox, and what all of its root holds.
import { type BigIntStats, lstatSync, readdirSync } from "node:fs";
import type { Described, Listing } from "./protocol.ts";

/** @returns null where nothing is */
export function describe(path: string): Described | null {
  const stats = statsOf(path);
  if (stats === undefined) return null;
  const kind = kindOf(stats);
  return {
    ...{ kind, mode: Number(stats.mode & 0o7777n), uid: Number(stats.uid), gid: Number(stats.gid) },
    changed: `${stats.ctimeNs}`,
    ...(kind === "folder" ? { names: namesIn(path) } : {}),
  };
}

/** Mounts are left out: they are of other file systems. */
export function listRoot(): Listing {
  const listing: Listing = [];
  const root = statsOf("/");
  const waiting = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const name of namesIn(folder === "" ? "/" : folder)) {
      const path = `${folder}/${name}`;
      const stats = statsOf(path);
      // Of an overlay only folders are sure to tell the number of its own device (overlayfs.rst, "Inode properties").
      if (stats === undefined || (stats.isDirectory() && stats.dev !== root?.dev)) continue;
      listing.push([path, kindOf(stats), Number(stats.mode & 0o7777n), Number(stats.uid), Number(stats.gid)]);
      if (stats.isDirectory()) waiting.push(path);
    }
  }
  return listing;
}

function kindOf(stats: BigIntStats): Described["kind"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  return stats.isSymbolicLink() ? "link" : "other";
}

function statsOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch {
    return undefined; // nothing, or a file where its folder should be
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
