// Writes the files that a Distributed Map leaves in S3: results by status, and a manifest that names them, written last.
// Layout: developer guide, "ResultWriter".
import { z } from "zod";
import { Failure, InvariantError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type ChildResult, describeChild } from "./child-result.ts";
import type { Json } from "./json-value.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { StateError } from "./state-error.ts";

const Place = z.strictObject({ Bucket: z.string().min(1), Prefix: z.string().optional() });

const FILES = {
  FAILED: ["FAILED", "TIMED_OUT", "ABORTED"],
  PENDING: ["PENDING"],
  SUCCEEDED: ["SUCCEEDED"],
} as const;

/**
 * @param place the writer's evaluated arguments
 * @returns the output of the state: where the manifest is
 * @throws StateError States.ResultWriterFailed
 */
export async function writeResults(
  place: Json,
  mapRunArn: string,
  children: readonly ChildResult[],
  bucket: RuntimeContext["bucket"],
): Promise<Json> {
  const parsed = Place.safeParse(place);
  if (!parsed.success) throw failed(z.prettifyError(parsed.error));
  const { Bucket: name, Prefix: prefix = "" } = parsed.data;
  const store = bucket(name);
  if (store === undefined) throw failed("The specified bucket does not exist");
  const folder = [prefix.replace(/\/+$/, ""), mapRunArn.slice(mapRunArn.lastIndexOf(":") + 1)]
    .filter(part => part !== "")
    .join("/");
  const files: Record<string, readonly { readonly Key: string; readonly Size: number }[]> = {};
  for (const [file, statuses] of Object.entries(FILES)) {
    const ended = children.filter(({ status }) => (statuses as readonly string[]).includes(status));
    const key = `${folder}/${file}_0.json`;
    const body = Buffer.from(JSON.stringify(ended.map(describeChild)));
    if (ended.length > 0) await replace(store, key, body);
    files[file] = ended.length > 0 ? [{ Key: key, Size: body.length }] : [];
  }
  const manifest = `${folder}/manifest.json`;
  const text = JSON.stringify({ DestinationBucket: name, MapRunArn: mapRunArn, ResultFiles: files });
  await replace(store, manifest, Buffer.from(text));
  return { MapRunArn: mapRunArn, ResultWriterDetails: { Bucket: name, Key: manifest } };
}

/** A runner that was killed after it wrote a file writes the same key again when it goes on. */
async function replace(store: ObjectStore, key: string, body: Uint8Array): Promise<void> {
  try {
    if ((await store.put(key, body, { ifNoneMatch: "*" })).written) return;
    const held = await store.get(key);
    if (held !== undefined && (await store.put(key, body, { ifMatch: held.etag })).written) return;
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw failed(error instanceof Error ? error.message : String(error));
  }
  throw new InvariantError("somebody else writes this map run's results", { key });
}

function failed(cause: string): StateError {
  return new StateError("States.ResultWriterFailed", cause);
}
