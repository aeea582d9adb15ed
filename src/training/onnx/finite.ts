// Looks at numbers where they cross a border of the trainer: nothing that is not finite comes in, moves a weight, or is
// written.
import { InputError } from "../../failure/errors.ts";
import { encodeSafetensors, type RawTensor } from "../../safetensors/format.ts";
import { rawTensor } from "../../safetensors/numbers.ts";
import { encodeJson } from "../../store/json.ts";
import type { ObjectStore } from "../../store/object-store.ts";
import type { Feeds } from "../../tensor/session.ts";

/** A number that is not finite, with what explains it. `train` makes an InputError of it that names the dump. */
export class NotFinite extends Error {
  override readonly name = "NotFinite";
  readonly tensor: string;
  readonly during: string;
  readonly index: number;
  readonly value: number;
  /** What was fed to the graph that made it. */
  readonly feeds: Feeds;

  constructor(tensor: string, during: string, found: { index: number; value: number }, feeds: Feeds) {
    super(`${tensor}[${found.index}] is ${found.value} while ${during}`);
    this.tensor = tensor;
    this.during = during;
    this.index = found.index;
    this.value = found.value;
    this.feeds = feeds;
  }
}

/** The largest number that bfloat16 holds; single precision goes a little further. */
export const LARGEST_BF16 = 3.3895313892515355e38;

/** @throws NotFinite for the first number that is not finite, or larger than `limit` */
export function assertFinite(
  tensor: string,
  data: Float32Array,
  during: string,
  { feeds = {}, limit = Number.MAX_VALUE }: { readonly feeds?: Feeds; readonly limit?: number } = {},
): void {
  for (let i = 0; i < data.length; i++) {
    // Also false for NaN.
    if (!(Math.abs(data[i]) <= limit))
      throw new NotFinite(tensor, during, { index: i, value: data[i] }, feeds);
  }
}

/**
 * Writes what explains the number: where it arose, the settings, and the micro-batch that was fed. Weights and batch lie
 * in the store as they were: the same training step makes the same number again.
 *
 * @returns the error for people
 */
export async function refuse(
  error: NotFinite,
  about: Readonly<Record<string, unknown>> & { readonly from: number },
  { store, prefix }: { readonly store: ObjectStore; readonly prefix: string },
): Promise<InputError> {
  const { tensor, during, index, value, feeds } = error;
  const arrays = Object.entries(feeds).map(([name, { data, shape }]): [string, RawTensor] => [
    name,
    rawTensor(data instanceof Float32Array ? "F32" : data instanceof Int32Array ? "I32" : "I64", shape, data),
  ]);
  const record = { format: "t1-not-finite-1", tensor, index, value: `${value}`, during, ...about };
  await replace(store, `${prefix}not-finite.safetensors`, encodeSafetensors(arrays));
  await replace(store, `${prefix}not-finite.json`, encodeJson(record));
  return new InputError(
    {
      what: "training met a number that is not finite; no weight of the run was changed",
      where: `${tensor}[${index}] while ${during}`,
      expected: `expected a finite number, got ${value}; its inputs are in ${store.url}/${prefix}not-finite.json and .safetensors`,
      fix: `mend what the tensor names and go on with t1 run resume, or start a run from version ${about.from} (policy: {run, version}) with a lower learning rate`,
    },
    { cause: error },
  );
}

/** The newest refusal is the one that is asked about. */
async function replace(store: ObjectStore, key: string, body: Uint8Array | string): Promise<void> {
  await store.delete(key);
  await store.put(key, body, { ifNoneMatch: "*" });
}
