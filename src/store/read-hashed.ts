// Objects whose hash another object holds: what lies there now is what was written then, or an error.
import { InputError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import type { ObjectStore } from "./object-store.ts";

/**
 * @param what is wrong when it is another object, or none
 * @throws InputError with both hashes
 */
export async function readHashed(
  store: ObjectStore,
  key: string,
  expectedSha256: string,
  what: string,
): Promise<Uint8Array> {
  const found = await store.get(key);
  const got = found === undefined ? "no such object" : sha256(found.body);
  if (found !== undefined && got === expectedSha256) return found.body;
  throw new InputError({
    what,
    where: key,
    expected: `expected SHA-256 ${expectedSha256}, got ${got}`,
    fix: "restore the object from a copy",
  });
}
