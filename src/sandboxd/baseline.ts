// What the root held before anybody worked in the sandbox, to compare with later. Nobody inside can set the time of a file's
// last change (ctime), so it gives away whatever was put back.
import { listPaths, listRoot, targetOf } from "./describe.ts";
import type { Changes, ListedEntry, Listing } from "./protocol.ts";

export class Baseline {
  /** JSON takes a tenth of the memory of its entries, and we look at it once, if at all. */
  readonly #listing: Uint8Array;
  /** Entries that differ from the listing. */
  readonly #own: Listing;

  /**
   * @param listing JSON of a `Listing`; of what is there now when it is empty
   * @param own paths that are compared with what is there now
   */
  constructor(listing: Uint8Array, own: readonly string[]) {
    this.#listing = listing.length > 0 ? listing : Buffer.from(JSON.stringify(listRoot()));
    this.#own = listPaths(own);
  }

  /**
   * Sorted by path. Folders that only contain changes are none; what a deleted folder held is deleted too.
   *
   * @throws Refusal for what cannot be listed
   */
  changes(): Changes {
    const before = new Map<string, ListedEntry>();
    const listing: Listing = JSON.parse(Buffer.from(this.#listing).toString("utf8"));
    for (const entry of [...listing, ...this.#own]) before.set(entry[0], entry);
    const changes: Changes = [];
    for (const entry of listRoot()) {
      const [path, kind] = entry;
      const old = before.get(path);
      before.delete(path);
      if (old !== undefined && isSame(old, entry)) continue;
      const target = kind === "link" ? targetOf(path) : null;
      if (old === undefined) changes.push([path, "added", kind, false, target]);
      else changes.push([path, "modified", kind, old[1] !== kind, target]);
    }
    for (const [path, kind] of before.values()) changes.push([path, "deleted", kind, false, null]);
    return changes.sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** A folder's times change with every name in it, which is a change of that name. */
function isSame([, kind, ...was]: ListedEntry, [, kindNow, ...is]: ListedEntry): boolean {
  const counted = kind === "folder" ? 3 : was.length; // mode, uid, gid
  return kind === kindNow && was.slice(0, counted).every((value, index) => value === is[index]);
}
