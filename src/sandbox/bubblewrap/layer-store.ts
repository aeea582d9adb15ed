// Layers of images in a folder of this machine, each under the hash of all it was made from. A layer is whole or not
// there: it is made aside and renamed. Of several processes that want the same one, one makes it and the others wait.

import { randomUUID } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { InputError } from "../../failure/errors.ts";
import { hasCode } from "../../files/file-errors.ts";
import { withFileLock } from "../../files/file-lock.ts";
import { makeFolders } from "../../files/make-folders.ts";
import { parseProcess, processState } from "../../files/process-identity.ts";
import { folderOfThisProcess } from "../../files/temporary-file.ts";
import { sandboxUser } from "./sandbox-user.ts";

/** Longest wait for another process that makes the same layer. */
const WAIT_MS = 3_600_000;

export class LayerStore {
  readonly #layers: string;
  readonly #locks: string;
  readonly #building: string;

  /**
   * @param folder made when it is missing
   * @throws InputError when sandboxes cannot read what lies there
   */
  constructor(folder: string) {
    this.#layers = join(folder, "layers");
    this.#locks = join(folder, "locks");
    this.#building = join(folder, "building");
    for (const path of [this.#layers, this.#locks, this.#building]) makeFolders(path, { mode: 0o755 });
    assertReachable(folder);
  }

  /** @returns undefined when it is not there */
  find(key: string): string | undefined {
    const path = join(this.#layers, key);
    return existsSync(path) ? path : undefined;
  }

  /**
   * @param make fills `upper` of the folder it is given (sandbox.ts, RootImage.changes)
   * @returns the layer's folder, which is in place when this resolves
   */
  async make(key: string, make: (changes: string) => Promise<void>): Promise<string> {
    const path = join(this.#layers, key);
    return withFileLock(join(this.#locks, key), { waitMs: WAIT_MS }, async () => {
      if (existsSync(path)) return path;
      this.#removeLeftovers();
      const changes = join(folderOfThisProcess(this.#building), randomUUID());
      makeFolders(dirname(changes), { mode: 0o755 });
      for (const made of [changes, join(changes, "upper"), join(changes, "work")]) {
        mkdirSync(made, { mode: 0o755 });
        const user = sandboxUser();
        if (user !== undefined) chownSync(made, user.uid, user.gid);
      }
      try {
        await make(changes);
        renameSync(join(changes, "upper"), path);
        return path;
      } finally {
        removeTree(changes);
      }
    });
  }

  /** Removes what killed builders left behind. */
  #removeLeftovers(): void {
    for (const name of readdirSync(this.#building)) {
      const identity = parseProcess(name);
      if (identity === undefined) continue;
      const state = processState(identity);
      if (state === "dead" || state === "rebooted") removeTree(join(this.#building, name));
    }
  }
}

/**
 * Sandboxes of the machine's root are another user (sandbox-user.ts): every folder on the way must let them pass.
 *
 * @throws InputError
 */
export function assertReachable(folder: string): void {
  if (sandboxUser() === undefined) return;
  for (let path = folder; ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) {
      throw new InputError({
        what: "sandboxes cannot reach a folder of images",
        where: folder,
        expected: `that everybody may pass ${path}`,
        fix: `use another folder, or: chmod o+x ${path}`,
      });
    }
    if (path === dirname(path)) return;
  }
}

/** Also folders without permissions, such as the kernel's own below `work`. */
function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    if (!hasCode(error, "EACCES", "EPERM", "ENOTEMPTY")) throw error;
    openFolders(path);
    rmSync(path, { recursive: true, force: true });
  }
}

function openFolders(path: string): void {
  chmodSync(path, 0o700);
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory() && lstatSync(join(path, entry.name)).isDirectory())
      openFolders(join(path, entry.name));
}
