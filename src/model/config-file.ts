// The bytes of config.json. A foreign file is edited and never rebuilt: keys that nobody here knows, and the spelling
// of every number, are the same in each version of a model.
import { type ModelConfig, newModelConfig } from "./config.ts";

export type WeightType = "bfloat16" | "float32";

/**
 * JSON with the source text of numbers (ECMAScript "JSON.parse source text access"), which TypeScript does not know
 * yet.
 */
interface SourceJson {
  parse(text: string, reviver: Reviver): Record<string, unknown>;
  rawJSON(text: string): unknown;
}
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
const sourceJson = JSON as unknown as SourceJson;

/** transformers 4.56 renamed `torch_dtype`; a file has one of these keys, both or neither. */
const TYPE_KEYS = ["dtype", "torch_dtype"];

/** config.json of a model that is made here. @param tokens ids that end or fill a text, as config.json names them */
export function newConfigFile(
  config: ModelConfig,
  dtype: WeightType,
  tokens: Readonly<Record<string, number | null>>,
): Uint8Array {
  return encode({ ...newModelConfig(config), ...tokens, dtype, torch_dtype: dtype });
}

/** The same config.json for weights of another type. @param file JSON, as `parseModelConfig` has accepted it */
export function withWeightType(file: Uint8Array, dtype: WeightType): Uint8Array {
  const json = sourceJson.parse(Buffer.from(file).toString("utf8"), (_, value, { source }) =>
    typeof value === "number" && source !== undefined ? sourceJson.rawJSON(source) : value,
  );
  const wrong = TYPE_KEYS.filter(key => key in json && json[key] !== dtype);
  if (wrong.length === 0) return file;
  return encode({ ...json, ...Object.fromEntries(wrong.map(key => [key, dtype])) });
}

function encode(json: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(json, undefined, 2)}\n`);
}
