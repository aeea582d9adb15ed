// Objects that are written once: a stage that runs again writes the same bytes to the same key, or it has a bug.
import { InvariantError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import type { ObjectStore } from "./object-store.ts";

/**
 * Writes an object that never changes. Equal bytes pass, so a stage may run again.
 *
 * @throws InvariantError with both hashes when other bytes lie there
 */
export async function putOnce(store: ObjectStore, key: string, body: Uint8Array | string): Promise<void> {
  const result = await store.put(key, body, { ifNoneMatch: "*" });
  if (result.written) return;
  const there = await store.get(key);
  if (there === undefined) throw new InvariantError("an object was deleted while it was written", { key });
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (Buffer.compare(there.body, bytes) === 0) return;
  throw new InvariantError("an object that is written once would change", {
    key,
    stored: sha256(there.body),
    written: sha256(bytes),
  });
}
