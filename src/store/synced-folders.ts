// Folders of a folder store. As in a bucket, one is there as long as something lies in it; and since an object is only as
// safe as the names on its way, that way is synced before it.
import { dirname } from "node:path";
import { makeFolder, removeIfEmpty, syncFolder } from "../files/file-steps.ts";
import { objectInTheWay } from "./file-store-errors.ts";
import { lookUp } from "./look-up.ts";

/** Folders remembered as synced; a limit, so that a run of many iterations does not collect them for ever. */
const MAX_KNOWN_FOLDERS = 20_000;

export class SyncedFolders {
  readonly #root: string;
  /** Folders whose way from the root was synced by us: objects in them survive a stop of the machine. */
  readonly #known = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Makes the folder and what lies above it, and syncs the way to it from the root once. */
  async make(folder: string): Promise<void> {
    if (folder === this.#root) return;
    const found = await lookUp(folder);
    if (found?.isFile()) throw objectInTheWay(folder);
    if (found !== undefined && this.#known.has(folder)) return;
    await this.make(dirname(folder));
    if (found === undefined) await makeFolder(folder);
    await syncFolder(dirname(folder));
    if (this.#known.size >= MAX_KNOWN_FOLDERS) this.#known.clear();
    this.#known.add(folder);
  }

  /** @param start the innermost of those that may be empty now */
  async removeEmpty(start: string): Promise<void> {
    let folder = start;
    while (folder !== this.#root && (await removeIfEmpty(folder))) {
      this.#known.delete(folder);
      folder = dirname(folder);
    }
    await syncFolder(folder);
  }

  /** Somebody else has deleted folders: none counts as synced any more. */
  forget(): void {
    this.#known.clear();
  }
}
