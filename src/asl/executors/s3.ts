// `aws-sdk:s3:getObject`, `putObject` and `listObjectsV2` on stores of ours. Error names as the SDK integration reports
// them (recorded on AWS for the missing bucket and key).
import { z } from "zod";
import type { ObjectStore } from "../../store/object-store.ts";
import type { Executors, TaskRequest } from "../executor.ts";
import type { Json } from "../json-value.ts";
import { StateError } from "../state-error.ts";

const Place = z.looseObject({ Bucket: z.string(), Key: z.string() });
const PutArguments = z.looseObject({
  Bucket: z.string(),
  Key: z.string(),
  Body: z.custom<Json>(value => value !== undefined),
  IfNoneMatch: z.literal("*").optional(),
  IfMatch: z.string().optional(),
});
const ListArguments = z.looseObject({
  Bucket: z.string(),
  Prefix: z.string().optional(),
  MaxKeys: z.int().min(1).optional(),
});

/** S3 answers with at most so many keys. */
const LONGEST_LIST = 1_000;

/** How often an unconditional put tries to be the last writer. */
const PUT_TRIES = 10;

/** @param buckets by name */
export function s3Executors(buckets: Readonly<Record<string, ObjectStore>>): Executors {
  const open = (name: string): ObjectStore => {
    if (!Object.hasOwn(buckets, name))
      throw failed("S3.NoSuchBucketException", "The specified bucket does not exist", 404);
    return buckets[name];
  };
  return {
    "aws-sdk:s3:getObject": async request => {
      const { Bucket: bucket, Key: key } = parse(Place, request);
      const found = await open(bucket).get(key);
      if (found === undefined)
        throw failed("S3.NoSuchKeyException", "The specified key does not exist.", 404);
      return {
        Body: Buffer.from(found.body).toString("utf8"),
        ContentLength: found.sizeBytes,
        ETag: quote(found.etag),
        Metadata: {},
      };
    },
    "aws-sdk:s3:putObject": async request => {
      const {
        Bucket: bucket,
        Key: key,
        Body: body,
        IfNoneMatch: isNew,
        IfMatch: etag,
      } = parse(PutArguments, request);
      const bytes = typeof body === "string" ? body : JSON.stringify(body);
      return { ETag: quote(await put(open(bucket), key, bytes, isNew === "*", etag)) };
    },
    "aws-sdk:s3:listObjectsV2": async request => {
      const {
        Bucket: bucket,
        Prefix: prefix = "",
        MaxKeys: most = LONGEST_LIST,
      } = parse(ListArguments, request);
      const contents: Json[] = [];
      let isTruncated = false;
      for await (const { key, sizeBytes } of open(bucket).list(prefix)) {
        if (contents.length === Math.min(most, LONGEST_LIST)) {
          isTruncated = true;
          break;
        }
        contents.push({ Key: key, Size: sizeBytes, StorageClass: "STANDARD" });
      }
      return {
        Contents: contents,
        IsTruncated: isTruncated,
        KeyCount: contents.length,
        Name: bucket,
        Prefix: prefix,
      };
    },
  };
}

async function put(
  store: ObjectStore,
  key: string,
  body: string,
  isNew: boolean,
  etag: string | undefined,
): Promise<string> {
  if (etag !== undefined) {
    const result = await store.put(key, body, { ifMatch: etag.replace(/^"|"$/g, "") });
    if (result.written) return result.etag;
    throw preconditionFailed();
  }
  for (let tries = 0; tries < PUT_TRIES; tries++) {
    const created = await store.put(key, body, { ifNoneMatch: "*" });
    if (created.written) return created.etag;
    if (isNew) throw preconditionFailed();
    const held = await store.get(key);
    const replaced = held === undefined ? undefined : await store.put(key, body, { ifMatch: held.etag });
    if (replaced?.written === true) return replaced.etag;
  }
  throw failed(
    "S3.S3Exception",
    "A conflicting conditional operation is currently in progress against this resource.",
    409,
  );
}

function preconditionFailed(): StateError {
  return failed("S3.S3Exception", "At least one of the pre-conditions you specified did not hold", 412);
}

function failed(
  name: "S3.NoSuchBucketException" | "S3.NoSuchKeyException" | "S3.S3Exception",
  message: string,
  status: number,
): StateError {
  return new StateError(name, `${message} (Service: S3, Status Code: ${status})`);
}

function parse<Schema extends z.ZodType>(schema: Schema, request: TaskRequest): z.output<Schema> {
  const parsed = schema.safeParse(request.arguments);
  if (!parsed.success) throw new StateError("States.Runtime", z.prettifyError(parsed.error));
  return parsed.data;
}

function quote(etag: string): string {
  return `"${etag}"`;
}
