// What the root held at one moment, to compare with later: where no container engine can tell what changed, the daemon
// can. Nobody inside can set the time of a file's last change (ctime), so it gives away whatever was put back.
import type { BigIntStats } from "node:fs";
import { targetOf, walkRoot } from "./describe.ts";
import type { Changes, FileKind } from "./protocol.ts";

interface Remembered {
  readonly kind: FileKind;
  /** Everything else that counts as a change. */
  readonly state: string;
}

export class Baseline {
  readonly #entries: ReadonlyMap<string, Remembered>;

  /** Remembers what is there now. */
  constructor() {
    this.#entries = readRoot();
  }

  /** Sorted by path. Folders that only contain changes are none; what a deleted folder held is deleted too. */
  changes(): Changes {
    const now = readRoot();
    const changes: Changes = [];
    for (const [path, entry] of now) {
      const old = this.#entries.get(path);
      const isModified = old !== undefined && (old.kind !== entry.kind || old.state !== entry.state);
      if (old !== undefined && !isModified) continue;
      const target = entry.kind === "link" ? targetOf(path) : null;
      if (old === undefined) changes.push([path, "added", entry.kind, false, target]);
      else changes.push([path, "modified", entry.kind, old.kind !== entry.kind, target]);
    }
    for (const [path, { kind }] of this.#entries)
      if (!now.has(path)) changes.push([path, "deleted", kind, false, null]);
    return changes.sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

function readRoot(): ReadonlyMap<string, Remembered> {
  const entries = new Map<string, Remembered>();
  walkRoot((path, kind, stats) => entries.set(path, { kind, state: stateOf(kind, stats) }));
  return entries;
}

/** A folder's times change with every name in it, which is a change of that name. */
function stateOf(kind: FileKind, { mode, uid, gid, ctimeNs }: BigIntStats): string {
  const access = `${mode & 0o7777n} ${uid} ${gid}`;
  return kind === "folder" ? access : `${access} ${ctimeNs}`;
}
