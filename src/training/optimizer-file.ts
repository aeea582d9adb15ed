// Optimizer state on disk: single-precision parameters and moments of one network, enough to go on byte for byte.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import type { Model } from "../model/checkpoint.ts";
import { assertParameters, type Head } from "../model/parameters.ts";
import { decodeSafetensors, encodeSafetensors, type RawTensor } from "../safetensors/format.ts";
import { rawTensor, tensorArray } from "../safetensors/numbers.ts";
import type { Moments } from "../tensor/adamw.ts";
import type { NetworkState } from "./onnx/network.ts";

const FORMAT = "t1-optimizer-1";
const Metadata = z.object({ format: z.literal(FORMAT), step: z.coerce.number().int().nonnegative() });

/** @param withParameters leaves them out where they are stored in full precision elsewhere */
export function encodeNetworkState(
  { parameters, moments, step }: NetworkState,
  { withParameters }: { readonly withParameters: boolean },
): Uint8Array {
  const tensors = [...parameters].flatMap(([name, { shape, data }]): [string, RawTensor][] => {
    const { first, second } = moments.get(name) ?? zeroMoments(data.length);
    const moment: [string, RawTensor][] = [
      [`first.${name}`, rawTensor("F32", shape, first)],
      [`second.${name}`, rawTensor("F32", shape, second)],
    ];
    return withParameters ? [[`parameter.${name}`, rawTensor("F32", shape, data)], ...moment] : moment;
  });
  return encodeSafetensors(tensors, { format: FORMAT, step: `${step}` });
}

/**
 * @param model gives the parameters where the file has none
 * @throws InputError when the file is broken or belongs to another model
 */
export function decodeNetworkState(bytes: Uint8Array, model: Model, head: Head, where: string): NetworkState {
  const file = decodeSafetensors(bytes, where);
  const metadata = Metadata.safeParse(file.metadata);
  if (!metadata.success)
    throw new InputError({ what: "not an optimizer state", where, expected: `metadata format ${FORMAT}` });
  const hasParameters = [...file.tensors.keys()].some(name => name.startsWith("parameter."));
  const names = [...model.parameters.keys()];
  const read = (part: string, name: string) => tensorArray(file, `${part}.${name}`, "F32");
  const parameters = hasParameters
    ? new Map(names.map(name => [name, read("parameter", name)] as const))
    : model.parameters;
  assertParameters(parameters, model.config, head, where);
  const moments = new Map(
    names.map(
      name => [name, { first: read("first", name).data, second: read("second", name).data }] as const,
    ),
  );
  return { config: model.config, parameters, moments, step: metadata.data.step };
}

function zeroMoments(length: number): Moments {
  return { first: new Float32Array(length), second: new Float32Array(length) };
}
