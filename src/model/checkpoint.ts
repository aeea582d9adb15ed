// A model as the files of a Hugging Face folder, and back. The files come as a set: whether they lie in a folder of this
// machine or in a store is the caller's concern. Weights are read and written tensor by tensor.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import type { FileSet, NamedContent } from "../files/content.ts";
import { openSafetensors, safetensorsSource } from "../safetensors/format.ts";
import { bf16Source, floatsOf, rawTensor } from "../safetensors/numbers.ts";
import { type ModelConfig, parseModelConfig } from "./config.ts";
import { type WeightType, withWeightType } from "./config-file.ts";
import { assertFinite, assertParameters, type Head, type Parameters } from "./parameters.ts";

export const CONFIG_FILE = "config.json";
const WEIGHTS_FILE = "model.safetensors";
const WEIGHTS_INDEX_FILE = "model.safetensors.index.json";

/** Files that say how text becomes tokens. */
export const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json"] as const;

/**
 * Files that pass from a policy to its successor byte for byte. Nothing else does: a file that we do not know by name
 * may hold weights of its own, which would be old beside the new ones.
 */
const TRAVELLING_FILES: readonly string[] = [
  ...TOKENIZER_FILES,
  "added_tokens.json",
  "chat_template.jinja",
  "chat_template.json",
  "generation_config.json",
  "merges.txt",
  "special_tokens_map.json",
  "vocab.json",
];

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
): NamedContent[] {
  const tensors = [...parameters].map(
    ([name, { shape, data }]) =>
      [name, dtype === "bfloat16" ? bf16Source(shape, data) : rawTensor("F32", shape, data)] as const,
  );
  return [
    { path: CONFIG_FILE, body: withWeightType(configFile, dtype) },
    { path: WEIGHTS_FILE, body: safetensorsSource(tensors, { format: "pt" }) },
  ];
}

/** The files of a policy that its successors keep. */
export function travellingFiles(files: FileSet): NamedContent[] {
  return files.names
    .filter(name => TRAVELLING_FILES.includes(name))
    .map(path => ({ path, body: files.source(path) }));
}

/** A model as it was given, without the files beside it that it does not consist of. */
export async function modelFiles(files: FileSet): Promise<NamedContent[]> {
  const weights = await weightFiles(files);
  const index = weights.includes(WEIGHTS_FILE) ? [] : [WEIGHTS_INDEX_FILE];
  const own = [CONFIG_FILE, ...index, ...weights].map(path => ({ path, body: files.source(path) }));
  return [...own, ...travellingFiles(files)];
}

/** @throws InputError when config.json is missing, broken, or of a model that cannot be trained here */
export async function readModelConfig(files: FileSet): Promise<ModelConfig> {
  return parseModelConfig(await readJsonFile(files, CONFIG_FILE), files.where + CONFIG_FILE);
}

/**
 * Reads config and weights, widened to single precision; weights may be sharded.
 *
 * @throws InputError when a file is missing, broken, or does not belong to this kind of model
 */
export async function readModel(files: FileSet, head: Head): Promise<Model> {
  const config = await readModelConfig(files);
  const parameters = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const name of await weightFiles(files)) {
    const file = await openSafetensors(files.source(name), files.where + name);
    for await (const [tensor, raw] of file.tensors()) parameters.set(tensor, floatsOf(raw, tensor));
  }
  dropTiedOutput(parameters, config, head);
  assertParameters(parameters, config, head, files.where);
  return { config, parameters };
}

/**
 * Checks a model tensor by tensor, with one of them in memory at a time.
 *
 * @throws InputError as `readModel` does, and for a weight that is not finite
 */
export async function checkModel(files: FileSet, head: Head): Promise<ModelConfig> {
  const config = await readModelConfig(files);
  const shapes = new Map<string, { shape: readonly number[] }>();
  for (const name of await weightFiles(files)) {
    const file = await openSafetensors(files.source(name), files.where + name);
    for await (const [tensor, raw] of file.tensors()) {
      const values = floatsOf(raw, tensor);
      assertFinite(new Map([[tensor, values]]), files.where);
      shapes.set(tensor, { shape: values.shape });
    }
  }
  dropTiedOutput(shapes, config, head);
  assertParameters(shapes, config, head, files.where);
  return config;
}

/** A JSON file of the folder. @throws InputError when it is missing or no JSON */
export async function readJsonFile(files: FileSet, name: string): Promise<unknown> {
  requireFile(files, name);
  const text = Buffer.from(await files.read(name)).toString("utf8");
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InputError({ what: "not JSON", where: files.where + name, expected: String(cause) }, { cause });
  }
}

/** Some exporters repeat the embedding as the output layer of a tied model. */
function dropTiedOutput(tensors: Map<string, unknown>, config: ModelConfig, head: Head): void {
  if (config.tiedEmbeddings && head === "language") tensors.delete("lm_head.weight");
}

/** Where a folder has a single file and an index, transformers reads the single file, too. */
async function weightFiles(files: FileSet): Promise<string[]> {
  if (files.names.includes(WEIGHTS_FILE) || !files.names.includes(WEIGHTS_INDEX_FILE)) {
    requireFile(files, WEIGHTS_FILE);
    return [WEIGHTS_FILE];
  }
  const index = Index.safeParse(await readJsonFile(files, WEIGHTS_INDEX_FILE));
  if (!index.success)
    throw new InputError({
      what: "not an index of weight files",
      where: files.where + WEIGHTS_INDEX_FILE,
      expected: "an object whose weight_map gives the file of each tensor",
      fix: "restore the file or save the model again",
    });
  const shards = [...new Set(Object.values(index.data.weight_map))].sort();
  for (const shard of shards) requireFile(files, shard);
  return shards;
}

function requireFile(files: FileSet, name: string): void {
  if (files.names.includes(name)) return;
  throw new InputError({
    what: `${name} is missing`,
    where: files.where,
    expected: "a Hugging Face model folder",
    fix: "check the path",
  });
}
