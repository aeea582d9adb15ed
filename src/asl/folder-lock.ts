// Locks a folder of journals for one runner.
import { join } from "node:path";
import { attributeFileError } from "../files/file-errors.ts";
import { withFileLock } from "../files/file-lock.ts";
import { makeFolders } from "../files/make-folders.ts";

/**
 * Makes the folder where it is missing.
 *
 * @returns unlocks the folder
 * @throws Failure StoreUnavailable when the folder cannot be used or another runner has it
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const release = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const hold = async (): Promise<void> => {
    makeFolders(folder);
    await withFileLock(join(folder, "runner.lock"), { waitMs: 0 }, async () => {
      taken.resolve();
      await release.promise;
    });
  };
  const held = hold().catch(error => {
    throw attributeFileError(error, "lock", folder);
  });
  held.catch(taken.reject);
  await taken.promise;
  return async () => {
    release.resolve();
    await held;
  };
}
