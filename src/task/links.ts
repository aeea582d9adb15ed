// Symbolic links of a task: none may lead out of its folder, where on another machine something else lies, or nothing.
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { InputError } from "../failure/errors.ts";
import type { FolderEntry } from "./list-folder.ts";

/**
 * @param folder  the task folder, symbolic links resolved
 * @param entries as listFolder returns them for it
 * @throws InputError for a link that leads out of the folder
 */
export function assertLinksInside(folder: string, entries: readonly FolderEntry[]): void {
  for (const entry of entries) {
    if (entry.kind !== "link" || isInside(folder, resolveLink(join(folder, entry.path), entry.target)))
      continue;
    throw new InputError({
      what: `symbolic link leads out of the task, to ${entry.target}`,
      where: join(folder, entry.path),
      expected: `a target inside ${folder}`,
      fix: "put a copy of the target in place of the link",
    });
  }
}

/**
 * Uploads keep links as links (packFolder; so does Harbor 0.26). But Harbor follows them when it checks what it uploads, and
 * refuses a cycle; and whatever walks such a folder by its links would never end.
 *
 * @param folder  the task folder, symbolic links resolved
 * @param entries as listFolder returns them for it
 * @param uploads folders within it that are uploaded
 * @param ignored paths within it that are not uploaded
 * @throws InputError when following links in one of the uploads never ends
 */
export function assertLinksEnd(
  folder: string,
  entries: readonly FolderEntry[],
  { uploads, ignored }: { readonly uploads: readonly string[]; readonly ignored: readonly string[] },
): void {
  if (entries.every(entry => entry.kind !== "link")) return;
  const finished = new Set(ignored.map(path => join(folder, path)));
  for (const upload of uploads) follow(join(folder, upload), [], finished);
}

export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** The target of a link, or of a broken one the part that exists. */
function resolveLink(link: string, target: string): string {
  const path = resolve(realpathSync(dirname(link)), target);
  if (existsSync(path)) return realpathSync(path);
  let known = dirname(path);
  while (!existsSync(known)) known = dirname(known);
  return join(realpathSync(known), path.slice(known.length));
}

/** @param finished paths below which everything was followed; gets this path too */
function follow(path: string, above: readonly string[], finished: Set<string>): void {
  if (finished.has(path) || !existsSync(path)) return;
  const real = realpathSync(path);
  if (finished.has(real) || !statSync(real).isDirectory()) return;
  if (above.includes(real)) {
    throw new InputError({
      what: "symbolic links form a cycle",
      where: path,
      expected: "folders that can be copied with their links followed",
      fix: "remove the link that leads back up",
    });
  }
  for (const name of readdirSync(path)) follow(join(path, name), [...above, real], finished);
  finished.add(real);
}
