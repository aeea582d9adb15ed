// `cloud.json`: what a run was first started with beside its config, and must keep: with another value the same
// iteration would be played by another policy when it is resumed.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { encodeJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { runKey } from "./keys.ts";

const CloudSettings = z.strictObject({ format: z.literal("t1-cloud-1"), overlap: z.boolean() });

/** Writes the settings the first time. @throws InputError when the run was started with others */
export async function fixCloudSettings(
  { run, overlap }: { readonly run: string; readonly overlap: boolean },
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const key = cloudKey(run);
  const settings = { format: "t1-cloud-1", overlap };
  if ((await store.put(key, encodeJson(settings), { ifNoneMatch: "*" })).written) return;
  const first = await readJson(store, key, CloudSettings);
  if (first.overlap === overlap) return;
  throw new InputError({
    what: "the run was started with another setting",
    where: `${key}: overlap`,
    expected: `expected ${first.overlap}, got ${overlap}`,
    fix: "start it again with the first value, or start a new run from one of its checkpoints",
  });
}

/** @returns undefined when the run was never started */
export async function readOverlap(store: ObjectStore, run: string): Promise<boolean | undefined> {
  if ((await store.head(cloudKey(run))) === undefined) return undefined;
  return (await readJson(store, cloudKey(run), CloudSettings)).overlap;
}

function cloudKey(run: string): string {
  return runKey(run).replace(/run\.json$/, "cloud.json");
}
