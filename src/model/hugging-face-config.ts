// The keys of config.json that decoder-only models share. A key that transformers' own class does not read cannot
// change its maths, and passes; a key that it does read is either understood here or refused.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import type { ModelConfig } from "./config.ts";

const Count = z.int().positive();

/** @param className the class that `architectures` has to name, where the file says it */
export function decoderKeys(className: string) {
  return {
    architectures: z.tuple([z.literal(className)]).nullish(),
    vocab_size: Count,
    hidden_size: Count,
    num_hidden_layers: Count,
    num_attention_heads: Count,
    num_key_value_heads: Count,
    head_dim: Count.nullish(),
    intermediate_size: Count,
    // transformers 4 writes `rope_theta` and `rope_scaling`, and 5 writes `rope_parameters`.
    rope_theta: z.number().positive().optional(),
    rope_scaling: z.looseObject({ rope_type: z.literal("default") }).nullish(),
    rope_parameters: z
      .looseObject({
        rope_theta: z.number().positive(),
        rope_type: z.literal("default").default("default"),
        partial_rotary_factor: z.literal(1).optional(),
      })
      .nullish(),
    rms_norm_eps: z.number().positive().default(1e-6),
    max_position_embeddings: Count,
    tie_word_embeddings: z.boolean().default(false),
    hidden_act: z.literal("silu").default("silu"),
    attention_bias: z.literal(false).default(false),
    attention_dropout: z.literal(0).default(0),
    use_sliding_window: z.literal(false).default(false),
    layer_types: z.array(z.literal("full_attention")).nullish(),
    quantization_config: z.null().optional(),
    /** Code that travels with the weights; it could compute anything. */
    auto_map: z.null().optional(),
  };
}

type DecoderKeys = z.infer<z.ZodObject<ReturnType<typeof decoderKeys>>>;

/** @throws InputError naming `file` and the key, with what is supported and what the file has */
export function readKeys<Keys>(schema: z.ZodType<Keys>, json: unknown, file: string): Keys {
  const parsed = schema.safeParse(json, { reportInput: true });
  if (parsed.success) return parsed.data;
  const [{ path, message, input }] = parsed.error.issues;
  const key = path.join(".");
  throw new InputError({
    what: "not a model that can be trained here",
    where: `${file}: ${key}`,
    expected:
      input === undefined ? `${message}: the key is missing` : `${message}, got ${JSON.stringify(input)}`,
    fix: `${key} changes what the model computes: use a model with a supported value`,
  });
}

/** The one value of a setting that has two spellings. @throws InputError when it is missing, or they disagree */
export function agreeing(file: string, spellings: Readonly<Record<string, number | undefined>>): number {
  const given = Object.entries(spellings).filter(
    (entry): entry is [string, number] => entry[1] !== undefined,
  );
  const names = Object.keys(spellings).join(" or ");
  if (given.length === 0)
    // transformers would go on with a default and other logits; never guess it.
    throw new InputError({
      what: "a model setting is missing",
      where: file,
      expected: names,
      fix: "add it to config.json",
    });
  const [[, value]] = given;
  if (given.some(([, other]) => other !== value))
    throw new InputError({
      what: "two spellings of a model setting disagree",
      where: file,
      expected: `one value, got ${given.map(([name, other]) => `${name} ${other}`).join(" and ")}`,
      fix: "keep the one that the weights were trained with",
    });
  return value;
}

/** @throws InputError when a width or the RoPE base cannot be told */
export function parseDecoder(keys: DecoderKeys, file: string): Omit<ModelConfig, "architecture" | "experts"> {
  const headDim = keys.head_dim ?? keys.hidden_size / keys.num_attention_heads;
  if (!Number.isInteger(headDim))
    throw new InputError({
      what: "the model's settings contradict each other",
      where: `${file}: hidden_size`,
      expected: `expected a multiple of num_attention_heads, which is ${keys.num_attention_heads}, got ${keys.hidden_size}`,
      fix: "add head_dim, or use config.json as it belongs to these weights",
    });
  return {
    vocabSize: keys.vocab_size,
    hiddenSize: keys.hidden_size,
    layerCount: keys.num_hidden_layers,
    headCount: keys.num_attention_heads,
    keyValueHeadCount: keys.num_key_value_heads,
    headDim,
    intermediateSize: keys.intermediate_size,
    ropeTheta: agreeing(file, {
      rope_theta: keys.rope_theta,
      "rope_parameters.rope_theta": keys.rope_parameters?.rope_theta,
    }),
    rmsNormEpsilon: keys.rms_norm_eps,
    maxPositions: keys.max_position_embeddings,
    tiedEmbeddings: keys.tie_word_embeddings,
  };
}

/** Keys for both transformers 4.57 and 5.x. */
export function writeDecoder(config: ModelConfig): Record<string, unknown> {
  return {
    attention_bias: false,
    attention_dropout: 0,
    head_dim: config.headDim,
    hidden_act: "silu",
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    max_position_embeddings: config.maxPositions,
    num_attention_heads: config.headCount,
    num_hidden_layers: config.layerCount,
    num_key_value_heads: config.keyValueHeadCount,
    rms_norm_eps: config.rmsNormEpsilon,
    rope_parameters: { rope_theta: config.ropeTheta, rope_type: "default" },
    rope_scaling: null,
    rope_theta: config.ropeTheta,
    sliding_window: null,
    tie_word_embeddings: config.tiedEmbeddings,
    use_sliding_window: false,
    vocab_size: config.vocabSize,
  };
}
