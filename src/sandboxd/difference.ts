// Reads a daemon's list of changes: how a sandbox differs from its image, and what a successor gets of it.
import type { FileChange } from "../sandbox/sandbox.ts";
import { isAtOrBelow } from "../sandbox/successor.ts";
import type { Changes } from "./protocol.ts";

export interface Difference {
  readonly changes: readonly FileChange[];
  /**
   * Paths that are there and not as before, and folders that hold such, so that these get their modes; as the daemon has
   * them (path-text.ts).
   */
  readonly carried: readonly string[];
  /** Paths that are gone, or of another kind than before. */
  readonly cleared: readonly string[];
}

/** Mounts, and what a container engine writes itself. */
const NOT_THE_SANDBOX = ["/proc", "/sys", "/dev", "/.t1", "/.dockerenv", "/run/.containerenv"];
const ENGINE_FILES = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab"];

export function isOfEngine(path: string): boolean {
  return NOT_THE_SANDBOX.some(prefix => isAtOrBelow(path, prefix)) || ENGINE_FILES.includes(path);
}

/** A daemon's list without entries that are not the sandbox's own. */
export function differenceOf(listed: Changes): Difference {
  const own = listed.filter(([path]) => !isOfEngine(path));
  const there = own.filter(([, change]) => change !== "deleted").map(([path]) => path);
  return {
    changes: own.map(([path, change, kind, , target]) => ({
      ...{ path: path.toWellFormed(), change, kind },
      ...(target !== null && { target: target.toWellFormed() }),
    })),
    carried: [...new Set(there.flatMap(path => [...foldersAbove(path), path]))],
    cleared: own
      .filter(([, change, , isReplaced]) => change === "deleted" || isReplaced)
      .map(([path]) => path),
  };
}

function foldersAbove(path: string): readonly string[] {
  const names = path.split("/").slice(1, -1);
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}
