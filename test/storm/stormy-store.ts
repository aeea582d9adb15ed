// A store as a driver sees it whose network fails: now and then for one request, before or after the store did what it
// was asked, and for good when the driver is lost.
import { Failure } from "../../src/failure/errors.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

export interface StormyStore extends ObjectStore {
  /** Blocks all requests from now on, so nothing that the driver does reaches the store any more. */
  sever(): void;
}

/** @param fails decides for every request if it fails */
export function stormyStore(store: ObjectStore, fails: (where: "before" | "after") => boolean): StormyStore {
  let isSevered = false;
  const check = (where: "before" | "after"): void => {
    if (!isSevered && !fails(where)) return;
    const what = isSevered ? "the driver is lost" : `planned, ${where} the request`;
    throw new Failure("StoreUnavailable", what, { retryable: true });
  };
  const through = async <T>(work: () => Promise<T>): Promise<T> => {
    check("before");
    const answer = await work();
    check("after");
    return answer;
  };
  const each = async function* <T>(items: AsyncIterable<T>): AsyncIterable<T> {
    check("before");
    yield* items;
  };
  return {
    url: store.url,
    sever: () => {
      isSevered = true;
    },
    get: key => through(() => store.get(key)),
    head: key => through(() => store.head(key)),
    put: (key, body, condition) => through(() => store.put(key, body, condition)),
    delete: key => through(() => store.delete(key)),
    stream: key => each(store.stream(key)),
    list: prefix => each(store.list(prefix)),
    folders: prefix => each(store.folders(prefix)),
  };
}
