// Objects that are written once: a stage that runs again writes the same bytes to the same key, or it has a bug.
import { InvariantError } from "../failure/errors.ts";
import { type Content, toSource } from "../files/content.ts";
import { digestOf } from "../files/sha256.ts";
import type { ObjectStore } from "./object-store.ts";

/**
 * Writes an object that never changes. Equal bytes pass, so a stage may run again.
 *
 * @throws InvariantError with both hashes when other bytes lie there
 */
export async function putOnce(store: ObjectStore, key: string, body: Content): Promise<void> {
  const result = await store.put(key, body, { ifNoneMatch: "*" });
  if (result.written) return;
  if ((await store.head(key)) === undefined)
    throw new InvariantError("an object was deleted while it was written", { key });
  const [stored, written] = [await digestOf(store.stream(key)), await digestOf(toSource(body).pieces())];
  if (stored.sha256 === written.sha256) return;
  throw new InvariantError("an object that is written once would change", {
    key,
    stored: stored.sha256,
    written: written.sha256,
  });
}
