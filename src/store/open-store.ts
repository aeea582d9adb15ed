// From the text in a config or on the command line to an open store.
import { fileURLToPath } from "node:url";
import { InputError } from "../failure/errors.ts";
import { hasCode } from "../files/file-errors.ts";
import { openFileStore } from "./file-store.ts";
import type { ObjectStore, StoreUse } from "./object-store.ts";

/**
 * A bucket is there or it is not, whatever it is opened for.
 *
 * @param url `file:///absolute/folder`, the path of a folder, or `s3://bucket/prefix` (s3/s3-url.ts)
 * @throws InputError for every other kind of URL, and as `openFileStore` and `openS3Store` do
 */
export function openStore(url: string, use: StoreUse = "create"): Promise<ObjectStore> {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      return openFileStore(assertPath(url), use);
    case "file":
      return openFileStore(pathOf(url), use);
    case "s3":
      // Only then: loading the SDK takes longer than most commands.
      return openInBucket(url);
    default:
      throw refuse(url, `expected a folder, a file: or an s3: URL, got scheme ${scheme}:`);
  }
}

/** For reading. @returns undefined for a folder that is not there @throws as `openStore` does */
export async function openStoreIfThere(url: string): Promise<ObjectStore | undefined> {
  try {
    return await openStore(url, "read");
  } catch (error) {
    if (error instanceof InputError && hasCode(error.cause, "ENOENT")) return undefined;
    throw error;
  }
}

async function openInBucket(url: string): Promise<ObjectStore> {
  const { openS3Store } = await import("./s3/s3-store.ts");
  return openS3Store(url);
}

function assertPath(path: string): string {
  if (path === "") throw refuse(path, "expected the path of a folder, got nothing");
  if (path.includes("\0")) throw refuse(path, "expected a path without NUL characters");
  if (path === "~" || path.startsWith("~/"))
    throw refuse(path, "expected a path as it is: only a shell knows what ~ stands for");
  return path;
}

function pathOf(url: string): string {
  const parsed = URL.parse(url);
  if (!/^file:\/\/\//i.test(url) || parsed === null || parsed.search !== "" || parsed.hash !== "")
    throw refuse(url, "expected file:/// and an absolute path without ? and #");
  return assertPath(fileURLToPath(parsed));
}

function refuse(url: string, expected: string): InputError {
  return new InputError({
    what: "cannot open store",
    where: JSON.stringify(url),
    expected,
    fix: "write e.g. ./runs or s3://my-bucket/runs",
  });
}
