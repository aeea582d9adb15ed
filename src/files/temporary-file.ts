// Files that are being written. Each process has a folder of its own for them, named by its identity, so that what a
// dead process left can be told from what a living one is writing.
import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, open, readdir, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { assertSize, type ByteSource, PIECE_BYTES } from "./content.ts";
import { hasCode } from "./file-errors.ts";
import { currentProcess, formatProcess, parseProcess, processState } from "./process-identity.ts";

/** Left-overs of machines whose processes cannot be seen from here are kept this long. */
const FOREIGN_AGE_MS = 24 * 3_600_000;

export interface TemporaryFile {
  readonly path: string;
  readonly sha256: string;
}

/** The folder of this process below `parent`. */
export function folderOfThisProcess(parent: string): string {
  return join(parent, formatProcess(currentProcess()));
}

/** Writes and syncs a new file into `folder` for the time of `action`, which may rename it to its place. */
export async function withTemporary<Result>(
  folder: string,
  content: ByteSource,
  action: (file: TemporaryFile) => Promise<Result>,
): Promise<Result> {
  const path = join(folder, randomUUID());
  const file = await open(path, "wx", 0o666);
  try {
    let sha256: string;
    try {
      sha256 = await writeAll(file, content);
    } finally {
      await file.close();
    }
    return await action({ path, sha256 });
  } finally {
    await removeFile(path);
  }
}

/**
 * Removes what dead processes left below `parent`; nothing else, and nothing of a living process. What only another user
 * may remove stays for that one.
 */
export async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const identity = parseProcess(name);
    if (identity === undefined) continue;
    const state = processState(identity);
    if (state === "alive") continue;
    if (state === "elsewhere" && (await ageMs(join(parent, name))) < FOREIGN_AGE_MS) continue;
    await rm(join(parent, name), { recursive: true, force: true }).catch(error => {
      if (!hasCode(error, "EACCES", "EPERM")) throw error;
    });
  }
}

/** @returns hash of what was written */
async function writeAll(file: FileHandle, content: ByteSource): Promise<string> {
  const hash = createHash("sha256");
  let total = 0;
  for await (const piece of content.pieces())
    for (let start = 0; start < piece.length; ) {
      const rest = piece.subarray(start, start + PIECE_BYTES);
      const { bytesWritten } = await file.write(rest);
      hash.update(rest.subarray(0, bytesWritten));
      start += bytesWritten;
      total += bytesWritten;
    }
  assertSize(content.sizeBytes, total);
  await file.sync();
  return hash.digest("hex");
}

async function ageMs(path: string): Promise<number> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0; // another process removed it just now
    throw error;
  }
}

/** What cannot be removed now is removed by `removeLeftovers` later, so it hides no error that came before. */
async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
