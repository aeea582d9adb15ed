// The files below a folder as keys in byte order, one folder at a time. Byte order of whole keys is not the order of
// folders: "a-b" < "a.b" < "a/b" < "a0", so a folder takes its place among its siblings as `name/`.
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../files/file-errors.ts";
import { notAnObject } from "./file-store-errors.ts";
import { assertKey, PRIVATE_SEGMENT } from "./object-key.ts";
import type { ObjectHead } from "./object-store.ts";

/** Files whose size is asked for at once; more would only queue up in the thread pool of Node. */
const SIZES_AT_ONCE = 32;

interface Entry {
  readonly key: string;
  readonly isFolder: boolean;
  /** UTF-8 of the name, with a slash behind a folder's. */
  readonly order: Buffer;
}

/**
 * @param root real path of the store's folder
 * @throws InputError for a symbolic link or anything else that is neither file nor folder
 */
export async function* listFolder(root: string, prefix: string): AsyncGenerator<ObjectHead> {
  const end = prefix.lastIndexOf("/") + 1;
  yield* walk(root, prefix.slice(0, end), prefix.slice(end));
}

/** Names of the folders directly in `folder` that are not empty. @param folder "" or a key prefix that ends in a slash */
export async function listNames(root: string, folder: string): Promise<string[]> {
  const folders = (await readEntries(root, folder, "")).filter(entry => entry.isFolder);
  const filled = await Promise.all(folders.map(({ key }) => isFilled(root, key)));
  return folders.filter((_, index) => filled[index]).map(({ key }) => key.slice(folder.length));
}

/** A folder whose last object was just deleted may still be there, empty. */
async function isFilled(root: string, folder: string): Promise<boolean> {
  for await (const _ of walk(root, `${folder}/`, "")) return true;
  return false;
}

/** @param folder "" or a key prefix that ends in a slash; `start` is how the names in it have to begin */
async function* walk(root: string, folder: string, start: string): AsyncGenerator<ObjectHead> {
  const entries = await readEntries(root, folder, start);
  for (let at = 0; at < entries.length; ) {
    const entry = entries[at];
    if (entry?.isFolder) {
      yield* walk(root, `${entry.key}/`, "");
      at++;
      continue;
    }
    const files = entries.slice(at, at + SIZES_AT_ONCE);
    const firstFolder = files.findIndex(({ isFolder }) => isFolder);
    const run = firstFolder === -1 ? files : files.slice(0, firstFolder);
    for (const head of await Promise.all(run.map(({ key }) => readHead(root, key))))
      if (head !== undefined) yield head;
    at += run.length;
  }
}

async function readEntries(root: string, folder: string, start: string): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const item of await readFolder(join(root, folder))) {
    if (!item.name.startsWith(start) || (folder === "" && item.name === PRIVATE_SEGMENT)) continue;
    const key = folder + item.name;
    assertKey(key);
    const isFolder = item.isDirectory();
    if (!isFolder && !item.isFile()) throw notAnObject(join(root, key));
    entries.push({ key, isFolder, order: Buffer.from(isFolder ? `${item.name}/` : item.name) });
  }
  return entries.sort((a, b) => Buffer.compare(a.order, b.order));
}

async function readFolder(path: string) {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

/** @returns undefined when it was deleted since its folder was read */
async function readHead(root: string, key: string): Promise<ObjectHead | undefined> {
  try {
    const { size } = await lstat(join(root, key));
    return { key, sizeBytes: size };
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}
