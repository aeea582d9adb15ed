// What stands at a path of a folder store.
import type { Stats } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { hasCode } from "../files/file-errors.ts";
import { notAnObject } from "./file-store-errors.ts";

/**
 * @returns undefined where nothing is
 * @throws InputError when a link leads there, so that no key leads out of the store
 */
export async function lookUp(path: string): Promise<Stats | undefined> {
  try {
    const found = await lstat(path);
    if ((!found.isFile() && !found.isDirectory()) || (await realpath(path)) !== path) throw notAnObject(path);
    return found;
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}
