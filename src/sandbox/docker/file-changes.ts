// What differs from the image, made of what the engine lists, what is there now, and what the image and the spec's files
// had there.
import { type Difference, isOfEngine } from "../daemon/difference.ts";
import type { Described } from "../daemon/protocol.ts";
import type { FileChange } from "../sandbox.ts";

/** As `GET /containers/{id}/changes` has it: 0 modified, 1 added, 2 deleted. Folders that hold changes are modified. */
export interface EngineChange {
  readonly Path: string;
  readonly Kind: number;
}

export type ImageEntry = Pick<Described, "kind" | "mode" | "uid" | "gid">;

export interface Before {
  /** Every path of the image. */
  readonly image: ReadonlyMap<string, ImageEntry>;
  /** What was made and placed before anybody worked in the sandbox. */
  readonly placed: ReadonlyMap<string, Described>;
}

/** @param now what is at the paths of both lists; nothing where a path is missing */
export function compareFiles(
  listed: readonly EngineChange[],
  now: ReadonlyMap<string, Described>,
  before: Before,
): Difference {
  const base = (path: string): ImageEntry | undefined => before.placed.get(path) ?? before.image.get(path);
  const paths = [...new Set([...listed.map(({ Path }) => Path), ...before.placed.keys()])].sort();
  const changes = new Map<string, FileChange>();
  const carried: string[] = [];
  const cleared: string[] = [];
  const addDeleted = (path: string, kind: ImageEntry["kind"]): void => {
    changes.set(path, { path, change: "deleted", kind });
    cleared.push(path);
  };
  for (const path of paths) {
    if (path === "/" || isOfEngine(path)) continue;
    const entry = isReachable(path, now) ? now.get(path) : undefined;
    const old = base(path);
    if (entry === undefined) {
      if (old !== undefined) addDeleted(path, old.kind);
    } else if (old === undefined) {
      changes.set(path, { ...whatIs(path, entry), change: "added" });
      carried.push(path);
    } else {
      const isChanged = isModified(entry, old, before.placed.get(path));
      if (isChanged) changes.set(path, { ...whatIs(path, entry), change: "modified" });
      if (isChanged || entry.kind === "folder") carried.push(path);
      if (entry.kind !== old.kind) cleared.push(path);
    }
    // Of a folder that is gone or was made anew the engine names no more than itself.
    if (old?.kind === "folder")
      for (const child of missingBelow(path, entry, before)) addDeleted(child, base(child)?.kind ?? "other");
  }
  const shown = [...changes.values()].map(change => ({
    ...{ ...change, path: change.path.toWellFormed() },
    ...(change.target !== undefined && { target: change.target.toWellFormed() }),
  }));
  return {
    changes: shown.sort((a, b) => (a.path < b.path ? -1 : 1)),
    carried: [...new Set(carried)],
    cleared: [...new Set(cleared)],
  };
}

function whatIs(path: string, { kind, target }: Described): Omit<FileChange, "change"> {
  return { path, kind, ...(target !== undefined && { target }) };
}

/** Below a link that took a folder's place there is something else. */
function isReachable(path: string, now: ReadonlyMap<string, Described>): boolean {
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
    const above = now.get(path.slice(0, at));
    if (above !== undefined && above.kind !== "folder") return false;
  }
  return true;
}

function isModified(entry: Described, old: ImageEntry, placed: Described | undefined): boolean {
  if (entry.kind !== old.kind || entry.mode !== old.mode) return true;
  if (entry.uid !== old.uid || entry.gid !== old.gid) return true;
  if (entry.kind === "folder") return false;
  // What is of the image and listed has been copied to be written.
  return placed === undefined || placed.changed !== entry.changed;
}

function missingBelow(
  path: string,
  entry: Described | undefined,
  { image, placed }: Before,
): readonly string[] {
  const names = entry?.kind === "folder" ? new Set(entry.names) : new Set<string>();
  const missing: string[] = [];
  for (const below of [...image.keys(), ...placed.keys()]) {
    if (!below.startsWith(`${path}/`) || isOfEngine(below)) continue;
    const [name = ""] = below.slice(path.length + 1).split("/");
    if (!names.has(name)) missing.push(below);
  }
  return missing;
}
