// The shape of a model, read from its Hugging Face config.json. The file itself is never rebuilt from this view: a
// later version of the model carries the same file, with the keys that only its authors know.
import { InputError } from "../failure/errors.ts";
import { ARCHITECTURES, type ArchitectureName } from "./architectures/table.ts";

/** A decoder-only transformer, as sampling and training need to know it. */
export interface ModelConfig {
  readonly architecture: ArchitectureName;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layerCount: number;
  readonly headCount: number;
  readonly keyValueHeadCount: number;
  readonly headDim: number;
  /** Inner width of the layers without experts. */
  readonly intermediateSize: number;
  /** Left out for a dense model. */
  readonly experts?: ExpertsConfig;
  readonly ropeTheta: number;
  readonly rmsNormEpsilon: number;
  readonly maxPositions: number;
  readonly tiedEmbeddings: boolean;
}

export interface ExpertsConfig {
  readonly count: number;
  readonly perToken: number;
  /** Inner width of one expert. */
  readonly intermediateSize: number;
  /** Gates are a softmax over the selected experts only; else over all experts. */
  readonly normalizeGates: boolean;
  /** Indices of the layers with experts, ascending; at least one. */
  readonly layers: readonly number[];
}

/** Routes are recorded with one or two bytes per expert (trajectory/routes.ts). */
const MAX_EXPERTS = 65_536;

/** @throws InputError naming `file`, the key, what was expected and what the file has */
export function parseModelConfig(json: unknown, file: string): ModelConfig {
  const name = Object(json).model_type;
  if (!isArchitecture(name)) {
    throw new InputError({
      what: "not a model that can be trained here",
      where: `${file}: model_type`,
      expected: `expected ${Object.keys(ARCHITECTURES).join(" or ")}, got ${JSON.stringify(name)}`,
      fix: "use a Qwen3 or Qwen3-MoE folder as transformers writes it",
    });
  }
  const config: ModelConfig = { architecture: name, ...ARCHITECTURES[name].parse(json, file) };
  assertComputable(config, file);
  return config;
}

/**
 * config.json of a model that is made here, in a spelling that transformers 4.57 and 5.x both load to the same model:
 * they name the number of experts and the RoPE base differently, and each silently falls back to a default when its own
 * spelling is missing.
 */
export function newModelConfig(config: ModelConfig): Record<string, unknown> {
  return { model_type: config.architecture, ...ARCHITECTURES[config.architecture].write(config) };
}

function isArchitecture(name: unknown): name is ArchitectureName {
  return typeof name === "string" && Object.hasOwn(ARCHITECTURES, name);
}

/** Each number is right by itself; together they have to be a network. */
function assertComputable(config: ModelConfig, file: string): void {
  const refuse = (key: string, expected: string): never => {
    throw new InputError({
      what: "the model's settings contradict each other",
      where: `${file}: ${key}`,
      expected: `expected ${expected}`,
      fix: "use config.json as it belongs to these weights",
    });
  };
  const { headCount, keyValueHeadCount, headDim, experts } = config;
  if (headCount % keyValueHeadCount !== 0)
    refuse(
      "num_key_value_heads",
      `a divisor of num_attention_heads, which is ${headCount}, got ${keyValueHeadCount}`,
    );
  // Rotary embeddings turn pairs of numbers.
  if (headDim % 2 !== 0) refuse("head_dim", `an even number, got ${headDim}`);
  if (experts === undefined) return;
  if (experts.perToken > experts.count)
    refuse(
      "num_experts_per_tok",
      `at most the number of experts, which is ${experts.count}, got ${experts.perToken}`,
    );
  if (experts.count > MAX_EXPERTS) refuse("num_experts", `at most ${MAX_EXPERTS}, got ${experts.count}`);
}
