// One small file per sandbox, so that whoever comes later can end what nobody owns any more. Sandboxes end with their
// driver by themselves; these files are for deadlines, and for what a driver that was killed left in its folder.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { hasCode } from "../../files/file-errors.ts";
import { makeFolders } from "../../files/make-folders.ts";
import { parseProcess, processState } from "../../files/process-identity.ts";
import { folderOfThisProcess } from "../../files/temporary-file.ts";
import { endProcess, type ProcessId } from "../processes.ts";
import type { Lease } from "../sandbox.ts";

const LeaseFile = z.strictObject({
  id: z.string(),
  generation: z.int(),
  deadlineMs: z.number(),
  first: z.strictObject({ pid: z.int().positive(), started: z.string() }),
});
type LeaseFile = z.infer<typeof LeaseFile>;

/** @returns removes the file again */
export function writeLease(
  folder: string,
  { id, generation, deadlineMs }: Lease,
  { pid, started }: ProcessId,
): () => void {
  const ofProcess = folderOfThisProcess(folder);
  makeFolders(ofProcess, { mode: 0o700 });
  const path = join(ofProcess, fileName({ id, generation }));
  const file: LeaseFile = { id, generation, deadlineMs, first: { pid, started } };
  writeFileSync(path, JSON.stringify(file));
  return () => rmSync(path, { force: true });
}

/** Removes a driver's folder at its end, when nothing is left in it. */
export function removeEmptyFolder(folder: string): void {
  try {
    rmdirSync(folderOfThisProcess(folder));
  } catch (error) {
    if (!hasCode(error, "ENOTEMPTY", "ENOENT")) throw error;
  }
}

/**
 * Ends sandboxes whose driver is dead or whose deadline has passed, and removes their files. What a driver in another
 * container left, whose processes cannot be seen from here, stays.
 *
 * @returns ids of the leases that ended
 */
export function sweepLeases(folder: string, nowMs: number): readonly string[] {
  const ended: string[] = [];
  for (const name of readdirSync(folder)) {
    const owner = parseProcess(name);
    const state = owner === undefined ? "elsewhere" : processState(owner);
    if (state === "elsewhere") continue;
    const ofProcess = join(folder, name);
    for (const lease of readLeases(ofProcess)) {
      if (state === "alive" && lease.deadlineMs > nowMs) continue;
      if (state !== "rebooted") endProcess(lease.first);
      rmSync(join(ofProcess, fileName(lease)), { force: true });
      ended.push(lease.id);
    }
    if (state !== "alive") rmSync(ofProcess, { recursive: true, force: true });
  }
  return ended;
}

function readLeases(folder: string): readonly LeaseFile[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.flatMap(name => {
    try {
      return [LeaseFile.parse(JSON.parse(readFileSync(join(folder, name), "utf8")))];
    } catch {
      return []; // its driver was killed while writing it, and the sandbox ended with the driver; or it ends it now
    }
  });
}

/** Ids may hold anything, slashes included. */
function fileName({ id, generation }: Pick<Lease, "id" | "generation">): string {
  return `${createHash("sha256").update(id).digest("hex").slice(0, 24)}-${generation}.json`;
}
