// A store that is a folder: the object of key `a/b` is the file `a/b`, so people and other programs can read it. What
// must always hold: a file in its place is whole and synced; it gets there by `link`, which fails when the place is
// taken, or by `rename` under the lock of its key, after comparing. Locks and unfinished files lie in `.t1-store`.
import { createHash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { access, type FileHandle, link, open, realpath, rename, stat, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { InputError } from "../failure/errors.ts";
import { type ByteSource, type Content, PIECE_BYTES, toSource } from "../files/content.ts";
import { attributeFileError, hasCode } from "../files/file-errors.ts";
import { withFileLock } from "../files/file-lock.ts";
import { linkIfFree, makeFolder, syncFolder, unlinkIfPresent } from "../files/file-steps.ts";
import { makeFolders } from "../files/make-folders.ts";
import { digestOf, sha256 } from "../files/sha256.ts";
import { folderOfThisProcess, removeLeftovers, withTemporary } from "../files/temporary-file.ts";
import {
  attributeOpenError,
  changedByHand,
  folderInTheWay,
  noSuchStore,
  notAFolder,
  notAnObject,
  tooLong,
} from "./file-store-errors.ts";
import { listFolder, listNames } from "./list-folder.ts";
import { lookUp } from "./look-up.ts";
import { assertKey, assertPrefix, PRIVATE_SEGMENT } from "./object-key.ts";
import type {
  ObjectHead,
  ObjectStore,
  PutCondition,
  PutResult,
  StoredObject,
  StoreUse,
} from "./object-store.ts";
import { SyncedFolders } from "./synced-folders.ts";

/** The lock is held for a few file operations; who holds it for longer is stopped or hangs in its disk. */
const LOCK_WAIT_MS = 30_000;

/** How often a folder may be deleted under a put before that is an error. */
const VANISHED_TRIES = 5;

/** PATH_MAX of Linux is 4,096 and a key has at most 900 bytes; 256 are room for our own names. */
const MAX_ROOT_BYTES = 2_900;

const LOST: PutResult = { written: false };

/**
 * Opens the store in `folder`. A store that is only read is not touched at all; every other way removes what dead
 * processes left unfinished. Several processes of one machine may use it at the same time; `.t1-store` may be deleted
 * only while none does.
 *
 * @throws InputError when it is no folder, is missing, cannot be used as asked, or its file system has no links
 * @throws Failure StoreUnavailable
 */
export async function openFileStore(folder: string, use: StoreUse = "create"): Promise<ObjectStore> {
  const path = resolve(folder);
  try {
    if (use === "create") await makeRoot(path);
    const root = await realpath(path).catch(error => {
      throw hasCode(error, "ENOENT") ? noSuchStore(path, error) : error;
    });
    if (!(await stat(root)).isDirectory()) throw notAFolder(path);
    await access(root, constants.R_OK | constants.X_OK | (use === "read" ? 0 : constants.W_OK));
    if (Buffer.byteLength(root) > MAX_ROOT_BYTES) throw tooLong(path, MAX_ROOT_BYTES);
    const store = new FileStore(root);
    if (use !== "read") await store.prepare();
    return store;
  } catch (error) {
    throw attributeOpenError(error, path, use);
  }
}

class FileStore implements ObjectStore {
  readonly url: string;
  readonly #root: string;
  readonly #temporary: string;
  readonly #locks: string;
  readonly #folders: SyncedFolders;

  constructor(root: string) {
    this.#root = root;
    this.url = pathToFileURL(root).href;
    this.#temporary = folderOfThisProcess(join(root, PRIVATE_SEGMENT, "unfinished"));
    this.#locks = join(root, PRIVATE_SEGMENT, "locks");
    this.#folders = new SyncedFolders(root);
  }

  async prepare(): Promise<void> {
    await this.#makePrivateFolders();
    await withTemporary(this.#temporary, toSource(new Uint8Array(1)), async ({ path }) => {
      await link(path, `${path}-link`);
      await unlink(`${path}-link`);
      await withFileLock(`${path}-lock`, { waitMs: LOCK_WAIT_MS }, async () => {});
    });
    await removeLeftovers(dirname(this.#temporary));
  }

  async get(key: string): Promise<StoredObject | undefined> {
    const path = this.#pathOf(key);
    try {
      return await this.#read(key, path);
    } catch (error) {
      throw attributeFileError(error, "get", path);
    }
  }

  async *stream(key: string): AsyncGenerator<Uint8Array> {
    const path = this.#pathOf(key);
    try {
      const file = await this.#openObject(path);
      if (file === undefined) throw missing(this.url, key);
      yield* piecesOf(file);
    } catch (error) {
      throw attributeFileError(error, "get", path);
    }
  }

  async head(key: string): Promise<ObjectHead | undefined> {
    const path = this.#pathOf(key);
    try {
      const found = await lookUp(path);
      return found?.isFile() ? { key, sizeBytes: found.size } : undefined;
    } catch (error) {
      throw attributeFileError(error, "head", path);
    }
  }

  async put(key: string, body: Content, condition: PutCondition): Promise<PutResult> {
    const path = this.#pathOf(key);
    const content = toSource(body);
    try {
      return await this.#againIfFolderVanishes(() =>
        "ifNoneMatch" in condition
          ? this.#create(path, content)
          : this.#replace(key, path, content, condition.ifMatch),
      );
    } catch (error) {
      throw attributeFileError(error, "put", path);
    }
  }

  async *list(prefix: string): AsyncGenerator<ObjectHead> {
    assertPrefix(prefix);
    const folder = resolve(this.#root, prefix.slice(0, prefix.lastIndexOf("/") + 1));
    try {
      if ((await lookUp(folder))?.isDirectory()) yield* listFolder(this.#root, prefix);
    } catch (error) {
      throw attributeFileError(error, "list", folder);
    }
  }

  async *folders(prefix: string): AsyncGenerator<string> {
    assertPrefix(prefix);
    const folder = resolve(this.#root, prefix);
    try {
      yield* await listNames(this.#root, prefix);
    } catch (error) {
      throw attributeFileError(error, "list", folder);
    }
  }

  async delete(key: string): Promise<void> {
    const path = this.#pathOf(key);
    try {
      if (!(await lookUp(path))?.isFile()) return;
      await this.#againIfFolderVanishes(() => this.#remove(key, path));
    } catch (error) {
      throw attributeFileError(error, "delete", path);
    }
  }

  async #read(key: string, path: string): Promise<StoredObject | undefined> {
    const file = await this.#openObject(path);
    if (file === undefined) return undefined;
    try {
      const { size } = await file.stat();
      const body = Buffer.allocUnsafeSlow(size); // not a piece of a shared pool: its buffer is the object alone
      const hash = createHash("sha256");
      for (let start = 0; start < size; ) {
        const { bytesRead } = await file.read(body, start, Math.min(PIECE_BYTES, size - start));
        if (bytesRead === 0) throw changedByHand(path, size, start);
        hash.update(body.subarray(start, start + bytesRead));
        start += bytesRead;
      }
      return { key, sizeBytes: size, body, etag: hash.digest("hex") };
    } finally {
      await file.close();
    }
  }

  async #create(path: string, content: ByteSource): Promise<PutResult> {
    // Most conflicts are a stage that runs again; then nothing needs to be written.
    const result = (await this.#isTaken(path)) ? LOST : await this.#link(path, content);
    // The loser syncs too: the winner may not have done so yet, or died before it did.
    await syncFolder(dirname(path));
    return result;
  }

  #link(path: string, content: ByteSource): Promise<PutResult> {
    return withTemporary(this.#temporary, content, async temporary => {
      await this.#folders.make(dirname(path));
      if (await linkIfFree(temporary.path, path)) return { written: true, etag: temporary.sha256 };
      await this.#isTaken(path); // throws when it is a folder that has the place
      return LOST;
    });
  }

  async #replace(key: string, path: string, content: ByteSource, etag: string): Promise<PutResult> {
    if ((await this.#etagOf(path)) !== etag) return LOST;
    return withTemporary(this.#temporary, content, temporary =>
      this.#locked(key, async () => {
        if ((await this.#etagOf(path)) !== etag) return LOST;
        await rename(temporary.path, path);
        await syncFolder(dirname(path));
        return { written: true, etag: temporary.sha256 };
      }),
    );
  }

  /** Under the lock, so that a replacement between its comparing and its renaming does not bring the object back. */
  #remove(key: string, path: string): Promise<void> {
    return this.#locked(key, async () => {
      await unlinkIfPresent(path);
      await this.#folders.removeEmpty(dirname(path));
    });
  }

  async #etagOf(path: string): Promise<string | undefined> {
    const file = await this.#openObject(path);
    return file === undefined ? undefined : (await digestOf(piecesOf(file))).sha256;
  }

  #locked<Result>(key: string, action: () => Promise<Result>): Promise<Result> {
    return withFileLock(join(this.#locks, sha256(Buffer.from(key))), { waitMs: LOCK_WAIT_MS }, action);
  }

  #pathOf(key: string): string {
    assertKey(key);
    return join(this.#root, key);
  }

  async #isTaken(path: string): Promise<boolean> {
    const found = await lookUp(path);
    if (found?.isDirectory()) throw folderInTheWay(path);
    return found !== undefined;
  }

  async #openObject(path: string): Promise<FileHandle | undefined> {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(path, flags).catch(error => {
      if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
      throw hasCode(error, "ELOOP", "ENXIO") ? notAnObject(path) : error;
    });
    let found: Stats | undefined;
    try {
      found = await lookUp(path);
    } finally {
      if (!found?.isFile()) await file?.close();
    }
    return found?.isFile() ? file : undefined;
  }

  /** Runs an action again when somebody deletes a folder between its making and its use. */
  async #againIfFolderVanishes<Result>(action: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await action();
      } catch (error) {
        if (!hasCode(error, "ENOENT") || tries === VANISHED_TRIES) throw error;
        this.#folders.forget();
        await this.#makePrivateFolders();
      }
    }
  }

  /** Not the root: when that is gone its disk is not mounted, and we would write to the disk below. */
  async #makePrivateFolders(): Promise<void> {
    await makeFolder(join(this.#root, PRIVATE_SEGMENT));
    await makeFolder(this.#locks);
    await makeFolder(dirname(this.#temporary));
    await makeFolder(this.#temporary);
  }
}

/** The rest of an open file, which is closed at its end or when the reader stops. */
async function* piecesOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function makeRoot(path: string): Promise<void> {
  for (const folder of makeFolders(path).toReversed()) await syncFolder(dirname(folder));
}

function missing(url: string, key: string): InputError {
  return new InputError({ what: "no such object", where: key, expected: `expected it in ${url}` });
}
