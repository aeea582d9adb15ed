// Reads objects that may be missing or broken. People want a report most when something went wrong, so one bad object
// costs its own place in the report and no more.
import pLimit from "p-limit";
import type { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** A value that was read, or the problem with it. */
export type Readable<Value> =
  | { readonly kind: "read"; readonly value: Value }
  | { readonly kind: "unreadable"; readonly problem: string };

/** @throws any error but `InputError`, because a store that fails is no broken object */
export async function tryRead<Value>(read: () => Promise<Value>): Promise<Readable<Value>> {
  try {
    return { kind: "read", value: await read() };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { kind: "unreadable", problem: error.message };
  }
}

/** @returns undefined when the object is missing or broken; `problems` gets a line for a broken one */
export async function readOptional<Schema extends z.ZodType>(
  store: ObjectStore,
  key: string,
  schema: Schema,
  problems: string[],
): Promise<z.output<Schema> | undefined> {
  const found = await store.get(key);
  if (found === undefined) return undefined;
  const parsed = await tryRead(async () => parseJson(found.body, key, schema));
  if (parsed.kind === "read") return parsed.value;
  problems.push(parsed.problem);
  return undefined;
}

/** Objects read at once. */
const AT_ONCE = 32;

/** Maps items a few at a time and keeps their order. */
export function mapSome<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  return pLimit(AT_ONCE).map(items, work);
}
