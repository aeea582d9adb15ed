// Shape of a Qwen3-MoE model, as its Hugging Face config.json says it. Reads what transformers 4 and 5 write and
// writes what both read: they name the number of experts and the RoPE base differently, and each silently falls back
// to a default when its own spelling is missing.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";

export interface ModelConfig {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layerCount: number;
  readonly headCount: number;
  readonly keyValueHeadCount: number;
  readonly headDim: number;
  /** Width of the dense layers (those not in `moeLayers`). */
  readonly intermediateSize: number;
  readonly expertCount: number;
  readonly expertsPerToken: number;
  readonly expertIntermediateSize: number;
  /** Gates are a softmax over the selected experts only; else over all experts. */
  readonly normalizeGates: boolean;
  /** Indices of the layers with experts, ascending. */
  readonly moeLayers: readonly number[];
  readonly ropeTheta: number;
  readonly rmsNormEpsilon: number;
  readonly maxPositions: number;
  readonly tiedEmbeddings: boolean;
}

const Count = z.int().positive();
/** Hugging Face configs carry many keys of no meaning here; only a contradiction is refused. */
const HuggingFaceConfig = z.looseObject({
  model_type: z.literal("qwen3_moe"),
  vocab_size: Count,
  hidden_size: Count,
  num_hidden_layers: Count,
  num_attention_heads: Count,
  num_key_value_heads: Count,
  head_dim: Count.optional(),
  intermediate_size: Count,
  num_experts: Count.optional(),
  num_local_experts: Count.optional(),
  num_experts_per_tok: Count,
  moe_intermediate_size: Count,
  norm_topk_prob: z.boolean().default(false),
  decoder_sparse_step: Count.default(1),
  mlp_only_layers: z.array(z.int().nonnegative()).nullish(),
  rope_theta: z.number().positive().optional(),
  rope_scaling: z.null().optional(),
  rope_parameters: z
    .looseObject({ rope_theta: z.number().positive(), rope_type: z.literal("default") })
    .optional(),
  rms_norm_eps: z.number().positive().default(1e-6),
  max_position_embeddings: Count,
  tie_word_embeddings: z.boolean().default(false),
  attention_bias: z.literal(false).default(false),
  hidden_act: z.literal("silu").default("silu"),
});

/** @throws InputError naming `file`, the key and what was expected */
export function parseModelConfig(json: unknown, file: string): ModelConfig {
  const parsed = HuggingFaceConfig.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new InputError({
      what: "not a model that can be trained here",
      where: `${file}: ${issue.path.join(".")}`,
      expected: issue.message,
      fix: "use a Qwen3-MoE folder as transformers writes it",
    });
  }
  const hf = parsed.data;
  const expertCount = hf.num_experts ?? hf.num_local_experts;
  const ropeTheta = hf.rope_theta ?? hf.rope_parameters?.rope_theta;
  if (expertCount === undefined) throw missing(file, "num_experts (or num_local_experts)");
  // transformers 4 would go on with 10000 and other logits; never guess it.
  if (ropeTheta === undefined) throw missing(file, "rope_theta (or rope_parameters.rope_theta)");
  const dense = hf.mlp_only_layers ?? [];
  const layers = Array.from({ length: hf.num_hidden_layers }, (_, layer) => layer);
  return {
    vocabSize: hf.vocab_size,
    hiddenSize: hf.hidden_size,
    layerCount: hf.num_hidden_layers,
    headCount: hf.num_attention_heads,
    keyValueHeadCount: hf.num_key_value_heads,
    headDim: hf.head_dim ?? hf.hidden_size / hf.num_attention_heads,
    intermediateSize: hf.intermediate_size,
    expertCount,
    expertsPerToken: hf.num_experts_per_tok,
    expertIntermediateSize: hf.moe_intermediate_size,
    normalizeGates: hf.norm_topk_prob,
    moeLayers: layers.filter(layer => !dense.includes(layer) && (layer + 1) % hf.decoder_sparse_step === 0),
    ropeTheta,
    rmsNormEpsilon: hf.rms_norm_eps,
    maxPositions: hf.max_position_embeddings,
    tiedEmbeddings: hf.tie_word_embeddings,
  };
}

/** config.json that transformers 4.57 and 5.x both load to the same model. */
export function toHuggingFaceConfig(
  config: ModelConfig,
  dtype: "bfloat16" | "float32",
): Record<string, unknown> {
  const layers = Array.from({ length: config.layerCount }, (_, layer) => layer);
  return {
    architectures: ["Qwen3MoeForCausalLM"],
    model_type: "qwen3_moe",
    attention_bias: false,
    attention_dropout: 0,
    decoder_sparse_step: 1,
    dtype,
    head_dim: config.headDim,
    hidden_act: "silu",
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    max_position_embeddings: config.maxPositions,
    mlp_only_layers: layers.filter(layer => !config.moeLayers.includes(layer)),
    moe_intermediate_size: config.expertIntermediateSize,
    norm_topk_prob: config.normalizeGates,
    num_attention_heads: config.headCount,
    num_experts: config.expertCount,
    num_experts_per_tok: config.expertsPerToken,
    num_hidden_layers: config.layerCount,
    num_key_value_heads: config.keyValueHeadCount,
    num_local_experts: config.expertCount,
    rms_norm_eps: config.rmsNormEpsilon,
    rope_parameters: { rope_theta: config.ropeTheta, rope_type: "default" },
    rope_scaling: null,
    rope_theta: config.ropeTheta,
    sliding_window: null,
    tie_word_embeddings: config.tiedEmbeddings,
    torch_dtype: dtype,
    use_sliding_window: false,
    vocab_size: config.vocabSize,
  };
}

function missing(file: string, key: string): InputError {
  return new InputError({
    what: "a model setting is missing",
    where: file,
    expected: key,
    fix: "add it to config.json",
  });
}
