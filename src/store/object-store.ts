// The contract of every store: objects under keys, written once or by compare-and-swap. Stages hand each other keys
// of this store, never data. One contract suite (test/contracts/object-store.ts) runs over every implementation.

/** What a conditional write asks for: that the key is free, or that it still holds the version read before. */
export type PutCondition = { readonly ifNoneMatch: "*" } | { readonly ifMatch: string };

export interface ObjectHead {
  readonly key: string;
  readonly sizeBytes: number;
  /** Opaque version of the content; equal exactly when the bytes are equal or the object was not rewritten. */
  readonly etag: string;
}

export interface StoredObject extends ObjectHead {
  readonly body: Uint8Array;
}

/** `written: false` says that the condition did not hold: somebody else won, and nothing was changed. */
export type PutResult = { readonly written: true; readonly etag: string } | { readonly written: false };

/**
 * Keys are `/`-separated, relative, without empty, `.` or `..` segments. A reader never sees half an object, and of
 * many writers with `ifNoneMatch` exactly one wins.
 *
 * Every method throws `Failure("StoreUnavailable")` when the storage itself fails (disk full, not writable, network);
 * `retryable` says whether trying again can help.
 */
export interface ObjectStore {
  /** Where the store lies, as it is written in configs and printed: `file:///…`, `s3://bucket/prefix`. */
  readonly url: string;
  /** @returns undefined when there is no such object */
  get(key: string): Promise<StoredObject | undefined>;
  /** Bytes of a large object, in order. @throws InputError when there is no such object */
  stream(key: string): AsyncIterable<Uint8Array>;
  head(key: string): Promise<ObjectHead | undefined>;
  put(key: string, body: Uint8Array | string, condition: PutCondition): Promise<PutResult>;
  /** Every object whose key starts with `prefix`, in ascending key order (byte order). */
  list(prefix: string): AsyncIterable<ObjectHead>;
  /** Deleting what is not there is no error. */
  delete(key: string): Promise<void>;
}
