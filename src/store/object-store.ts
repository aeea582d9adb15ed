// The contract of every store: objects under keys, written once or by compare-and-swap. Stages hand each other keys
// of this store, never data. One contract suite (test/contracts/object-store.ts) runs over every implementation.
import type { Content } from "../files/content.ts";

/** What a conditional write asks for: that the key is free, or that it still holds the version read before. */
export type PutCondition = { readonly ifNoneMatch: "*" } | { readonly ifMatch: string };

/** What a store is opened for. Only `create` makes one that is missing, and `read` leaves everything as it is. */
export type StoreUse = "create" | "change" | "read";

export interface ObjectHead {
  readonly key: string;
  readonly sizeBytes: number;
}

export interface StoredObject extends ObjectHead {
  readonly body: Uint8Array;
  /**
   * Opaque version of the content, for `ifMatch`; the same bytes may have the same one. Only `get` and `put` tell it:
   * a folder would have to read every object to tell it in a list.
   */
  readonly etag: string;
}

/** `written: false` says that the condition did not hold: somebody else won, and nothing was changed. */
export type PutResult = { readonly written: true; readonly etag: string } | { readonly written: false };

/**
 * Keys are `/`-separated, relative, without empty, `.` or `..` segments (object-key.ts). A reader never sees half an
 * object, and of many writers with `ifNoneMatch`, or with the same `ifMatch`, exactly one wins. What was put stays put
 * when the machine stops the moment after.
 *
 * Every method throws `Failure("StoreUnavailable")` when the storage itself fails (disk full, not writable, network);
 * `retryable` says whether trying again can help. A key that cannot be one is an `InputError`.
 */
export interface ObjectStore {
  /** Where the store lies, as it is written in configs and printed: `file:///…`, `s3://bucket/prefix`. */
  readonly url: string;
  /** The whole object in memory; large ones are better read by `stream`. @returns undefined when there is none */
  get(key: string): Promise<StoredObject | undefined>;
  /** Bytes of a large object, in order. @throws InputError when there is no such object */
  stream(key: string): AsyncIterable<Uint8Array>;
  head(key: string): Promise<ObjectHead | undefined>;
  /** @param body a source is read from its beginning again for every try, and never held whole in memory */
  put(key: string, body: Content, condition: PutCondition): Promise<PutResult>;
  /** Every object whose key starts with `prefix`, in ascending key order (byte order of UTF-8). */
  list(prefix: string): AsyncIterable<ObjectHead>;
  /** Names of the folders directly below a prefix (`""` or one that ends in a slash) that hold objects, in byte order. */
  folders(prefix: string): AsyncIterable<string>;
  /** Deleting what is not there is no error. */
  delete(key: string): Promise<void>;
}
