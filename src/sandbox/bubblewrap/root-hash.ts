// What a root file system is known by, so that layers made over it are made anew when it changed: names, kinds,
// permissions, sizes and times of all that is in it. Contents are not read.
import { createHash } from "node:crypto";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../../failure/errors.ts";

/** @throws InputError when it is no folder */
export function hashRoot(folder: string, where: string): string {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InputError({
      what: `the folder that stands for an image is not there: ${folder}`,
      where,
      expected: "a folder that holds a root file system",
      fix: "make it by scripts/make-root.sh, or correct the images file",
    });
  }
  const hash = createHash("sha256");
  const waiting = [""];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    for (const name of readdirSync(join(folder, path)).sort()) {
      const child = `${path}/${name}`;
      const stats = lstatSync(join(folder, child));
      // A folder's own time changes with what is in it, which is listed.
      const more = stats.isDirectory() ? [] : [stats.size, stats.mtimeMs];
      hash.update(JSON.stringify([child, stats.mode, ...more]));
      if (stats.isDirectory()) waiting.push(child);
    }
  }
  return hash.digest("hex");
}
