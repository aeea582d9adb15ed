// Single steps on files and folders, each with its expected refusals told as a value instead of an error.
import { constants } from "node:fs";
import { link, mkdir, open, readlink, rmdir, symlink, unlink } from "node:fs/promises";
import { hasCode } from "./file-errors.ts";

/** @returns false when something is there already */
export async function symlinkIfFree(path: string, target: string): Promise<boolean> {
  try {
    await symlink(target, path);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

export async function readLink(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/** @returns false when it is gone already or something lies in it */
export async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOTEMPTY", "EEXIST", "ENOENT")) return false;
    throw error;
  }
}

export async function linkIfFree(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

export async function unlinkIfPresent(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}

/** Makes the names in a folder survive a stop of the machine. A folder that is gone has none. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    // EINVAL, ENOTSUP: a network or shared folder that cannot sync names; EACCES: a parent that we may not read.
    if (!hasCode(error, "ENOENT", "EINVAL", "ENOTSUP", "EACCES")) throw error;
  }
}
