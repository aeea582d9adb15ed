// Optimizer state on disk: single-precision parameters and moments of one network, enough to go on byte for byte.
import { z } from "zod";
import { InputError } from "../../failure/errors.ts";
import { type ByteSource, cut } from "../../files/content.ts";
import type { Model } from "../../model/checkpoint.ts";
import { assertParameters, type Head } from "../../model/parameters.ts";
import {
  openSafetensors,
  type RawTensor,
  safetensorsSource,
  type TensorSource,
} from "../../safetensors/format.ts";
import { arrayOf, rawTensor } from "../../safetensors/numbers.ts";
import type { NetworkState } from "./network.ts";

const FORMAT = "t1-optimizer-1";
const Metadata = z.object({ format: z.literal(FORMAT), step: z.coerce.number().int().nonnegative() });

/** @param withParameters leaves them out where they are stored in full precision elsewhere */
export function encodeNetworkState(
  { parameters, moments, step }: NetworkState,
  { withParameters }: { readonly withParameters: boolean },
): ByteSource {
  const tensors = [...parameters].flatMap(([name, { shape, data }]) => {
    const { first, second } = moments.get(name) ?? {};
    const own: readonly (readonly [string, RawTensor | TensorSource])[] = [
      [`parameter.${name}`, rawTensor("F32", shape, data)],
      [`first.${name}`, first === undefined ? zeros(shape) : rawTensor("F32", shape, first)],
      [`second.${name}`, second === undefined ? zeros(shape) : rawTensor("F32", shape, second)],
    ];
    return withParameters ? own : own.slice(1);
  });
  return safetensorsSource(tensors, { format: FORMAT, step: `${step}` });
}

/**
 * @param model gives config and names, and the parameters where the file has none
 * @param where what the file is called in errors
 * @throws InputError when the file is broken or belongs to another model
 */
export async function decodeNetworkState(
  source: ByteSource,
  model: Model,
  head: Head,
  where: string,
): Promise<NetworkState> {
  const file = await openSafetensors(source, where);
  const metadata = Metadata.safeParse(file.metadata);
  if (!metadata.success)
    throw new InputError({ what: "not an optimizer state", where, expected: `metadata format ${FORMAT}` });
  const arrays = new Map<string, { readonly data: Float32Array; readonly shape: readonly number[] }>();
  for await (const [name, tensor] of file.tensors()) arrays.set(name, arrayOf(tensor, name, "F32"));
  const read = (name: string) => {
    const found = arrays.get(name);
    if (found !== undefined) return found;
    throw new InputError({ what: `tensor ${name} is missing`, where, expected: "the state of this model" });
  };
  const names = [...model.parameters.keys()];
  const hasParameters = [...arrays.keys()].some(name => name.startsWith("parameter."));
  const parameters = hasParameters
    ? new Map(names.map(name => [name, read(`parameter.${name}`)] as const))
    : model.parameters;
  assertParameters(parameters, model.config, head, where);
  const moments = new Map(
    names.map(
      name => [name, { first: read(`first.${name}`).data, second: read(`second.${name}`).data }] as const,
    ),
  );
  return { config: model.config, parameters, moments, step: metadata.data.step };
}

/** Made only while they are written: without a step of training, moments would take twice the model's memory. */
function zeros(shape: readonly number[]): TensorSource {
  const count = shape.reduce((product, dim) => product * dim, 1);
  return { dtype: "F32", shape, pieces: () => cut(new Uint8Array(4 * count)) };
}
