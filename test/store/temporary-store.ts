// Folders and stores for one test, removed when it ends.
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openFileStore } from "../../src/store/file-store.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

/** @returns the real path of an empty folder */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "t1-store-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function temporaryStore(): Promise<ObjectStore> {
  return openFileStore(await temporaryFolder());
}
