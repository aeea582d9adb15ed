// The content hash of a folder: of the path, executable bit and bytes of each file and the target of each symbolic
// link. It does not depend on where the folder lies, on times, owners, or the order in which files are listed.
import { createHash, hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { attributeUserFileError, readUserFile } from "../files/user-files.ts";
import { type FolderEntry, listFolder } from "./list-folder.ts";

/** An entry's path with its content hash. */
export interface HashedEntry {
  readonly path: string;
  readonly record: string;
}

const TASK_FILE = { what: "a file of the task", expected: "a file" };

/** Larger files are read in pieces; for smaller ones, one read costs less than opening a stream. */
const STREAM_FROM_BYTES = 1 << 20;

/** @returns SHA-256 in hex over everything in the folder; see the head of hash.ts for what counts. */
export async function hashFolder(folder: string): Promise<string> {
  return combineHashes(await hashEntries(folder, listFolder(folder)));
}

/** @param entries as listFolder returns them for this folder */
export async function hashEntries(
  folder: string,
  entries: readonly FolderEntry[],
): Promise<readonly HashedEntry[]> {
  const hashed: HashedEntry[] = [];
  for (const entry of entries) {
    const kind = entry.kind === "link" ? "link" : entry.isExecutable ? "program" : "file";
    const content = entry.kind === "link" ? hash("sha256", entry.target) : await hashFile(folder, entry);
    // A path holds no NUL, and kind and content have a fixed form: no two lists of entries give the same records.
    hashed.push({ path: entry.path, record: `${kind}\0${entry.path}\0${content}\0` });
  }
  return hashed;
}

/** @param entries sorted by path */
export function combineHashes(entries: readonly HashedEntry[]): string {
  return hash("sha256", entries.map(entry => entry.record).join(""));
}

async function hashFile(
  folder: string,
  { path, sizeBytes }: FolderEntry & { kind: "file" },
): Promise<string> {
  const file = join(folder, path);
  if (sizeBytes < STREAM_FROM_BYTES) return hash("sha256", readUserFile(file, TASK_FILE));
  const digest = createHash("sha256");
  try {
    for await (const piece of createReadStream(file, { highWaterMark: STREAM_FROM_BYTES }))
      digest.update(piece);
  } catch (error) {
    throw attributeUserFileError(error, file, TASK_FILE);
  }
  return digest.digest("hex");
}
