// A model as the files of a Hugging Face folder, and back. Files are handed over as bytes by name: where they lie, in a
// folder or in a store, is the caller's concern.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { decodeSafetensors, encodeSafetensors, type RawTensor } from "../safetensors/format.ts";
import { rawBf16, rawTensor, tensorFloats } from "../safetensors/numbers.ts";
import { type ModelConfig, parseModelConfig } from "./config.ts";
import { type WeightType, withWeightType } from "./config-file.ts";
import { assertParameters, type Head, type Parameters } from "./parameters.ts";

export type Files = ReadonlyMap<string, Uint8Array>;

export const CONFIG_FILE = "config.json";
const WEIGHTS_FILE = "model.safetensors";
const WEIGHTS_INDEX_FILE = "model.safetensors.index.json";

/** Files that say how text becomes tokens; they pass from a policy to its successor unchanged. */
export const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json"] as const;

export interface Model {
  readonly config: ModelConfig;
  readonly parameters: Parameters;
}

const Index = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/**
 * config.json and model.safetensors. `bfloat16` rounds: it is what samplers read; training keeps `float32`.
 *
 * @param configFile config.json of the model that these weights come from
 */
export function encodeModelFiles(
  parameters: Parameters,
  configFile: Uint8Array,
  dtype: WeightType,
): Map<string, Uint8Array> {
  const tensors = [...parameters].map(([name, { shape, data }]): [string, RawTensor] => [
    name,
    dtype === "bfloat16" ? rawBf16(shape, data) : rawTensor("F32", shape, data),
  ]);
  return new Map([
    [CONFIG_FILE, withWeightType(configFile, dtype)],
    [WEIGHTS_FILE, encodeSafetensors(tensors, { format: "pt" })],
  ]);
}

/**
 * Reads config and weights, widened to single precision; weights may be sharded.
 *
 * @param where what the folder is called in errors
 * @throws InputError when a file is missing, broken, or does not belong to this kind of model
 */
export function decodeModelFiles(files: Files, head: Head, where: string): Model {
  const config = parseModelConfig(parseJson(files, CONFIG_FILE, where), `${where}/${CONFIG_FILE}`);
  const parameters = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const name of weightFiles(files, where)) {
    const shard = decodeSafetensors(requireFile(files, name, where), `${where}/${name}`);
    for (const tensor of shard.tensors.keys()) parameters.set(tensor, tensorFloats(shard, tensor));
  }
  // Some exporters repeat the embedding as the output layer of a tied model.
  if (config.tiedEmbeddings && head === "language") parameters.delete("lm_head.weight");
  assertParameters(parameters, config, head, where);
  return { config, parameters };
}

/** A JSON file of the folder. @throws InputError when it is missing or no JSON */
export function parseJson(files: Files, name: string, where: string): unknown {
  const text = Buffer.from(requireFile(files, name, where)).toString("utf8");
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InputError({ what: "not JSON", where: `${where}/${name}`, expected: String(cause) }, { cause });
  }
}

function weightFiles(files: Files, where: string): string[] {
  if (!files.has(WEIGHTS_INDEX_FILE)) return [WEIGHTS_FILE];
  const index = Index.safeParse(parseJson(files, WEIGHTS_INDEX_FILE, where));
  if (!index.success)
    throw new InputError({ what: "not an index of weight files", where: `${where}/${WEIGHTS_INDEX_FILE}` });
  return [...new Set(Object.values(index.data.weight_map))].sort();
}

/** A file of the folder. @throws InputError when it is missing */
export function requireFile(files: Files, name: string, where: string): Uint8Array {
  const file = files.get(name);
  if (file === undefined) {
    throw new InputError({
      what: `${name} is missing`,
      where,
      expected: "a Hugging Face model folder",
      fix: "check the path",
    });
  }
  return file;
}
