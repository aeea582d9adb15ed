// Folders of the sandbox, made and emptied. Step by step and without a path, because a tree may be deeper than any path
// is long; and all in one turn, because the working directory belongs to the whole process.
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from "node:fs";
import { hasCode } from "../files/file-errors.ts";
import { pathOfText, readNames } from "./path-text.ts";
import { Refusal, reasonOf } from "./refusal.ts";

/** Makes a folder and those above it. Links to folders are followed; what is no folder is in the way. */
export function makeFolder(path: string): void {
  fromRoot(path, () => enterFolder(path, namesOf(path), { isReplacing: false }));
}

/** Puts a fresh folder in the place of whatever is there: a link is replaced, and so is what is in the way to it. */
export function emptyFolder(path: string): void {
  fromRoot(path, () => {
    const names = namesOf(path);
    const last = names.at(-1);
    if (last === undefined) throw new Refusal("cannot empty the root");
    enterFolder(path, names.slice(0, -1), { isReplacing: true });
    const stats = entryOf(last);
    if (stats?.isDirectory()) {
      enter(last);
      emptyHere(path);
      process.chdir("..");
      attempt(`cannot replace ${path}`, () => rmdirSync(pathOfText(last)));
    } else if (stats !== undefined) {
      attempt(`cannot replace ${path}`, () => unlinkSync(pathOfText(last)));
    }
    attempt(`cannot make ${path}`, () => mkdirSync(pathOfText(last), { mode: 0o755 }));
  });
}

/** Removes what is at a path, whatever it is; nothing is no error. Links on the way are followed. */
export function removeEntry(path: string): void {
  fromRoot(path, () => {
    const names = namesOf(path);
    const last = names.at(-1);
    if (last === undefined) throw new Refusal("cannot remove the root");
    for (const name of names.slice(0, -1)) if (!tryEnter(name)) return;
    const stats = entryOf(last);
    if (stats?.isDirectory()) {
      enter(last);
      emptyHere(path);
      process.chdir("..");
      attempt(`cannot remove ${path}`, () => rmdirSync(pathOfText(last)));
    } else if (stats !== undefined) {
      attempt(`cannot remove ${path}`, () => unlinkSync(pathOfText(last)));
    }
  });
}

function fromRoot(path: string, action: () => void): void {
  process.chdir("/");
  try {
    attempt(`cannot make ${path}`, action);
  } finally {
    process.chdir("/");
  }
}

function enterFolder(
  path: string,
  names: readonly string[],
  { isReplacing }: { readonly isReplacing: boolean },
): void {
  for (const name of names) {
    if (tryEnter(name)) continue;
    if (isReplacing && entryOf(name) !== undefined)
      attempt(`cannot replace ${path}`, () => unlinkSync(pathOfText(name)));
    attempt(`cannot make ${path}`, () => {
      mkdirSync(pathOfText(name), { mode: 0o755 });
      enter(name);
    });
  }
}

function tryEnter(name: string): boolean {
  try {
    enter(name);
    return true;
  } catch {
    return false;
  }
}

/** A link is followed. */
function enter(name: string): void {
  const path = pathOfText(name);
  if (typeof path === "string") {
    process.chdir(path);
    return;
  }
  // Node's chdir takes text only; a name that is no text needs its descriptor.
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    process.chdir(`/proc/self/fd/${folder}`);
  } finally {
    closeSync(folder);
  }
}

function emptyHere(path: string): void {
  let depth = 0;
  for (;;) {
    const full = removeEntries(path);
    if (full !== undefined) {
      enter(full);
      depth += 1;
    } else if (depth > 0) {
      process.chdir("..");
      depth -= 1;
    } else {
      return;
    }
  }
}

/** @returns a folder that has to be emptied first, undefined when nothing is left */
function removeEntries(path: string): string | undefined {
  for (const name of readNames(".")) {
    if (!entryOf(name)?.isDirectory()) {
      attempt(`cannot empty ${path}`, () => unlinkSync(pathOfText(name)));
      continue;
    }
    try {
      rmdirSync(pathOfText(name));
    } catch (error) {
      if (hasCode(error, "ENOTEMPTY", "EEXIST")) return name;
      throw new Refusal(`cannot empty ${path}: ${reasonOf(error)}`); // a mount, for one
    }
  }
  return undefined;
}

function entryOf(name: string): Stats | undefined {
  return lstatSync(pathOfText(name), { throwIfNoEntry: false });
}

function attempt(what: string, action: () => void): void {
  try {
    action();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(`${what}: ${reasonOf(error)}`);
  }
}

function namesOf(path: string): readonly string[] {
  return path.split("/").filter(name => name !== "" && name !== ".");
}
