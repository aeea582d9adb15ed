// `Bucket` and `Key` of a reader, a writer or an S3 call, and the store behind the bucket.
import { z } from "zod";
import type { ObjectStore } from "../store/object-store.ts";
import type { Json } from "./json-value.ts";
import { type ErrorName, StateError } from "./state-error.ts";

export const ReaderObject = z.strictObject({ Bucket: z.string().min(1), Key: z.string().min(1) });
export const ReaderList = z.strictObject({ Bucket: z.string().min(1), Prefix: z.string().optional() });
export const WriterPlace = z.strictObject({ Bucket: z.string().min(1), Prefix: z.string().optional() });

/** @throws StateError `error` for arguments that do not fit */
export function parsePlace<Schema extends z.ZodType>(
  schema: Schema,
  value: Json,
  error: ErrorName,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new StateError(error, z.prettifyError(parsed.error));
  return parsed.data;
}

/** @throws StateError `error` for a bucket that nobody opened */
export function openBucket(
  bucket: (name: string) => ObjectStore | undefined,
  name: string,
  error: ErrorName,
): ObjectStore {
  const store = bucket(name);
  if (store === undefined) throw new StateError(error, "The specified bucket does not exist");
  return store;
}
