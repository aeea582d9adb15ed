// The items of a Distributed Map from S3: a JSON list, JSON lines, or the objects under a prefix.
import { createHash } from "node:crypto";
import { Failure, InputError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { holding } from "./clock.ts";
import { exceedsBytes, type Json } from "./json-value.ts";
import type { ItemReader } from "./machine.ts";
import { openBucket, parsePlace, ReaderList, ReaderObject } from "./s3-place.ts";
import { StateError } from "./state-error.ts";
import type { World } from "./world.ts";

/**
 * @param place    the reader's arguments, evaluated
 * @param maxItems what comes after them is not read
 * @throws StateError States.ItemReaderFailed when the object is missing, is not what it should be, or has an item that
 *   no state could take
 */
export function readItems(
  { kind }: ItemReader,
  place: Json,
  maxItems: number,
  { bucket, clock, limits }: Pick<World, "bucket" | "clock" | "limits">,
): Promise<Json[]> {
  return holding(clock, async () => {
    const items: Json[] = [];
    try {
      for await (const item of itemsOf(kind, place, bucket)) {
        if (exceedsBytes(JSON.stringify(item), limits.payloadBytes))
          throw failed(`The size of item ${items.length} exceeds the maximum number of bytes service limit.`);
        items.push(item);
        if (items.length >= maxItems) break;
      }
    } catch (error) {
      // The store says that there is no such object; that its disk is gone stays a failure of ours.
      if (error instanceof InputError) throw failed(error.message);
      if (error instanceof Failure || error instanceof StateError) throw error;
      throw error;
    }
    return items;
  });
}

async function* itemsOf(
  kind: ItemReader["kind"],
  place: Json,
  bucket: World["bucket"],
): AsyncGenerator<Json> {
  if (kind === "LIST") {
    const { Bucket: name, Prefix: prefix = "" } = parsePlace(ReaderList, place, "States.ItemReaderFailed");
    yield* listObjects(openBucket(bucket, name, "States.ItemReaderFailed"), prefix);
    return;
  }
  const { Bucket: name, Key: key } = parsePlace(ReaderObject, place, "States.ItemReaderFailed");
  const store = openBucket(bucket, name, "States.ItemReaderFailed");
  if (kind === "JSONL") {
    let number = 0;
    for await (const line of readLines(store.stream(key))) {
      number++;
      if (line.trim() !== "") yield parseItem(line, `line ${number} of ${key}`);
    }
    return;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.stream(key)) chunks.push(chunk);
  const list = parseItem(decode(Buffer.concat(chunks)), key);
  // Recorded on AWS for a JSON object that is no list.
  if (!Array.isArray(list)) throw failed("Attempting to map over non-iterable node.");
  yield* list;
}

/** Lines without their ends (`\n` or `\r\n`); the last one may lack it. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let rest = "";
  const take = (bytes: Uint8Array | undefined): string => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw failed("The object is not UTF-8 text.");
    }
  };
  for await (const chunk of chunks) {
    const lines = (rest + take(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  rest += take(undefined);
  if (rest !== "") yield rest.endsWith("\r") ? rest.slice(0, -1) : rest;
}

/**
 * As ListObjectsV2 tells it. LastModified is left out: a store of ours does not know it, and a machine that reads it
 * should fail here and not get an invented time.
 */
async function* listObjects(store: ObjectStore, prefix: string): AsyncGenerator<Json> {
  for await (const { key, sizeBytes } of store.list(prefix)) {
    const md5 = createHash("md5");
    for await (const chunk of store.stream(key)) md5.update(chunk);
    yield { Etag: `"${md5.digest("hex")}"`, Key: key, Size: sizeBytes, StorageClass: "STANDARD" };
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw failed("The object is not UTF-8 text.");
  }
}

function parseItem(text: string, where: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw failed(`${where} is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function failed(cause: string): StateError {
  return new StateError("States.ItemReaderFailed", cause);
}
