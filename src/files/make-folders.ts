// Makes folders where a person said that something is to lie. Node's own recursive way never ends where a folder can
// neither be made nor found, e.g. below /proc (nodejs/node#31481).
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { hasCode } from "./file-errors.ts";

/**
 * Makes a folder and those above it that are missing.
 *
 * @param mode permissions of those that it makes, of which the umask takes some away
 * @returns the folders that were missing, the outermost first
 * @throws the error of the file system when one cannot be made
 */
export function makeFolders(path: string, { mode = 0o777 } = {}): readonly string[] {
  const missing: string[] = [];
  for (
    let folder = resolve(path);
    statSync(folder, { throwIfNoEntry: false }) === undefined;
    folder = dirname(folder)
  )
    missing.unshift(folder);
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // Another process was faster; what else is in the way tells whoever uses the folder.
      if (!hasCode(error, "EEXIST")) throw error;
    }
  }
  return missing;
}
