// A folder of journals belongs to one runner at a time.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { attributeFileError } from "../store/file-errors.ts";
import { withFileLock } from "../store/file-lock.ts";

/**
 * Makes the folder where it is not there.
 *
 * @returns gives the folder free
 * @throws Failure StoreUnavailable when it cannot be used or another runner has it
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw attributeFileError(error, "create", folder);
  }
  const lock = join(folder, "runner.lock");
  const release = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const held = withFileLock(lock, { waitMs: 0 }, async () => {
    taken.resolve();
    await release.promise;
  });
  held.catch(taken.reject);
  await taken.promise;
  return async () => {
    release.resolve();
    await held;
  };
}
