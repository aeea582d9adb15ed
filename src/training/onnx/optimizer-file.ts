// Optimizer state on disk: single-precision parameters and moments of one network, enough to go on byte for byte.
import { z } from "zod";
import { InputError } from "../../failure/errors.ts";
import { type ByteSource, cut } from "../../files/content.ts";
import type { Model } from "../../model/checkpoint.ts";
import { assertParameters, type Head, type Parameters } from "../../model/parameters.ts";
import {
  openSafetensors,
  type RawTensor,
  safetensorsSource,
  type TensorSource,
} from "../../safetensors/format.ts";
import { arrayOf, rawTensor } from "../../safetensors/numbers.ts";
import type { NetworkState } from "./network.ts";

const FORMAT = "t1-optimizer-1";
const PARAMETER = "parameter.";
const Metadata = z.object({ format: z.literal(FORMAT), step: z.coerce.number().int().nonnegative() });

/** @param withParameters leaves them out where they are stored in full precision elsewhere */
export function encodeNetworkState(
  { parameters, moments, step }: NetworkState,
  { withParameters }: { readonly withParameters: boolean },
): ByteSource {
  const tensors = [...parameters].flatMap(([name, { shape, data }]) => {
    const { first, second } = moments.get(name) ?? {};
    const own: readonly (readonly [string, RawTensor | TensorSource])[] = [
      [PARAMETER + name, rawTensor("F32", shape, data)],
      [`first.${name}`, first === undefined ? zeros(shape) : rawTensor("F32", shape, first)],
      [`second.${name}`, second === undefined ? zeros(shape) : rawTensor("F32", shape, second)],
    ];
    return withParameters ? own : own.slice(1);
  });
  return safetensorsSource(tensors, { format: FORMAT, step: `${step}` });
}

/**
 * @param parameters of the network, where the file was written without them
 * @param where what the file is called in errors
 * @throws InputError when the file is broken or belongs to another model
 */
export async function decodeNetworkState(
  source: ByteSource,
  { config, parameters: elsewhere }: Pick<Model, "config"> & Partial<Model>,
  head: Head,
  where: string,
): Promise<NetworkState> {
  const { step, arrays } = await readArrays(source, where);
  const parameters = elsewhere ?? below(PARAMETER, arrays);
  assertParameters(parameters, config, head, where);
  const read = (name: string): Float32Array => {
    const found = arrays.get(name);
    if (found !== undefined) return found.data;
    throw new InputError({ what: `tensor ${name} is missing`, where, expected: "the state of this model" });
  };
  const moments = Array.from(parameters.keys(), name => {
    return [name, { first: read(`first.${name}`), second: read(`second.${name}`) }] as const;
  });
  return { config, parameters, moments: new Map(moments), step };
}

/** The parameters of a file that has them; moments are not held in memory. @throws InputError as `decodeNetworkState` */
export async function decodeParameters(
  source: ByteSource,
  { config }: Pick<Model, "config">,
  head: Head,
  where: string,
): Promise<Parameters> {
  const { arrays } = await readArrays(source, where, PARAMETER);
  const parameters = below(PARAMETER, arrays);
  assertParameters(parameters, config, head, where);
  return parameters;
}

/** The step, and the arrays whose names begin so. */
async function readArrays(source: ByteSource, where: string, beginning = "") {
  const file = await openSafetensors(source, where);
  const metadata = Metadata.safeParse(file.metadata);
  if (!metadata.success)
    throw new InputError({ what: "not an optimizer state", where, expected: `metadata format ${FORMAT}` });
  const arrays = new Map<string, { readonly data: Float32Array; readonly shape: readonly number[] }>();
  for await (const [name, tensor] of file.tensors())
    if (name.startsWith(beginning)) arrays.set(name, arrayOf(tensor, name, "F32"));
  return { step: metadata.data.step, arrays };
}

function below(beginning: string, arrays: Parameters): Parameters {
  const found = [...arrays].filter(([name]) => name.startsWith(beginning));
  return new Map(found.map(([name, array]) => [name.slice(beginning.length), array]));
}

/** Made only while they are written: without a step of training, moments would take twice the model's memory. */
function zeros(shape: readonly number[]): TensorSource {
  const count = shape.reduce((product, dim) => product * dim, 1);
  return { dtype: "F32", shape, pieces: () => cut(new Uint8Array(4 * count)) };
}
