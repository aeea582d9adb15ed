// The files that a Distributed Map leaves in S3: results by status and a manifest, written last, that names them.
// Layout: developer guide, "ResultWriter"; result files end in .json also when they hold JSON lines (floci PR#1823).
import { Failure, InvariantError } from "../failure/errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type ChildResult, describeChild, transformChild } from "./child-result.ts";
import type { Json } from "./json-value.ts";
import type { ResultWriter } from "./machine.ts";
import { openBucket, parsePlace, WriterPlace } from "./s3-place.ts";
import { StateError } from "./state-error.ts";
import type { World } from "./world.ts";

const FILES = {
  SUCCEEDED: "SUCCEEDED",
  FAILED: "FAILED",
  TIMED_OUT: "FAILED",
  ABORTED: "FAILED",
  PENDING: "PENDING",
} as const;

/**
 * @param place the writer's arguments, evaluated
 * @returns the output of the state: where the manifest is
 * @throws StateError States.ResultWriterFailed
 */
export async function writeResults(
  { outputType, transformation }: ResultWriter,
  place: Json,
  mapRunArn: string,
  children: readonly ChildResult[],
  bucket: World["bucket"],
): Promise<Json> {
  const { Bucket: name, Prefix: prefix = "" } = parsePlace(WriterPlace, place, "States.ResultWriterFailed");
  const store = openBucket(bucket, name, "States.ResultWriterFailed");
  const folder = [prefix.replace(/\/+$/, ""), mapRunArn.slice(mapRunArn.lastIndexOf(":") + 1)]
    .filter(part => part !== "")
    .join("/");
  const files: Record<"FAILED" | "PENDING" | "SUCCEEDED", { Key: string; Size: number }[]> = {
    FAILED: [],
    PENDING: [],
    SUCCEEDED: [],
  };
  for (const file of ["FAILED", "PENDING", "SUCCEEDED"] as const) {
    const results = children
      .filter(({ status }) => FILES[status] === file)
      .flatMap(child =>
        file === "SUCCEEDED" ? transformChild(child, transformation) : [describeChild(child)],
      );
    if (results.length === 0) continue;
    const key = `${folder}/${file}_0.json`;
    const body = Buffer.from(
      outputType === "JSONL"
        ? results.map(result => `${JSON.stringify(result)}\n`).join("")
        : JSON.stringify(results),
    );
    await replace(store, key, body);
    files[file].push({ Key: key, Size: body.length });
  }
  const manifest = `${folder}/manifest.json`;
  await replace(
    store,
    manifest,
    Buffer.from(JSON.stringify({ DestinationBucket: name, MapRunArn: mapRunArn, ResultFiles: files })),
  );
  return { MapRunArn: mapRunArn, ResultWriterDetails: { Bucket: name, Key: manifest } };
}

/** A redriven Map Run writes the same keys again. */
async function replace(store: ObjectStore, key: string, body: Uint8Array): Promise<void> {
  try {
    for (let tries = 0; tries < 5; tries++) {
      if ((await store.put(key, body, { ifNoneMatch: "*" })).written) return;
      const held = await store.get(key);
      if (held !== undefined && (await store.put(key, body, { ifMatch: held.etag })).written) return;
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new StateError("States.ResultWriterFailed", error instanceof Error ? error.message : String(error));
  }
  throw new InvariantError("somebody else writes this map run's results", { key });
}
