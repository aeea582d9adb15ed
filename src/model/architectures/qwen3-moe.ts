// Qwen3-MoE: Qwen3 with a router and experts in place of the feed-forward block, in all layers or in some.
// Source: transformers, models/qwen3_moe/modeling_qwen3_moe.py.
import { z } from "zod";
import {
  attentionBlock,
  attentionShapes,
  expertsBlock,
  expertsShapes,
  feedForwardBlock,
  feedForwardShapes,
  type LayerRouting,
} from "../blocks.ts";
import type { ExpertsConfig } from "../config.ts";
import { agreeing, decoderKeys, parseDecoder, readKeys, writeDecoder } from "../hugging-face-config.ts";
import type { Architecture } from "./table.ts";

const Count = z.int().positive();
const Keys = z.looseObject({
  ...decoderKeys("Qwen3MoeForCausalLM"),
  // transformers 4 reads `num_experts`, and 5 writes `num_local_experts`.
  num_experts: Count.optional(),
  num_local_experts: Count.optional(),
  num_experts_per_tok: Count,
  moe_intermediate_size: Count,
  norm_topk_prob: z.boolean().default(false),
  decoder_sparse_step: Count.default(1),
  mlp_only_layers: z.array(z.int().nonnegative()).nullish(),
});

export const qwen3Moe: Architecture = {
  parse: (json, file) => {
    const keys = readKeys(Keys, json, file);
    const count = agreeing(file, {
      num_experts: keys.num_experts,
      num_local_experts: keys.num_local_experts,
    });
    const dense = keys.mlp_only_layers ?? [];
    const layers = Array.from({ length: keys.num_hidden_layers }, (_, layer) => layer).filter(
      layer => !dense.includes(layer) && (layer + 1) % keys.decoder_sparse_step === 0,
    );
    const experts: ExpertsConfig = {
      count,
      perToken: keys.num_experts_per_tok,
      intermediateSize: keys.moe_intermediate_size,
      normalizeGates: keys.norm_topk_prob,
      layers,
    };
    return { ...parseDecoder(keys, file), ...(layers.length > 0 && { experts }) };
  },

  write: config => {
    const { layerCount, experts } = config;
    const layers = Array.from({ length: layerCount }, (_, layer) => layer);
    return {
      architectures: ["Qwen3MoeForCausalLM"],
      ...writeDecoder(config),
      decoder_sparse_step: 1,
      mlp_only_layers: layers.filter(layer => !experts?.layers.includes(layer)),
      ...(experts && {
        moe_intermediate_size: experts.intermediateSize,
        norm_topk_prob: experts.normalizeGates,
        num_experts: experts.count,
        num_experts_per_tok: experts.perToken,
        num_local_experts: experts.count,
      }),
    };
  },

  parameters: (config, layer) => {
    const { hiddenSize, intermediateSize, experts } = config;
    const at = `model.layers.${layer}`;
    const block = experts?.layers.includes(layer)
      ? expertsShapes(`${at}.mlp`, hiddenSize, experts)
      : feedForwardShapes(`${at}.mlp`, hiddenSize, intermediateSize);
    return [...attentionShapes(at, config), ...block];
  },

  layers: (embedded, parts) => {
    const { layerCount, experts } = parts.config;
    const routing: LayerRouting[] = [];
    let x = embedded;
    for (let layer = 0; layer < layerCount; layer++) {
      x = attentionBlock(x, layer, parts);
      if (experts?.layers.includes(layer)) {
        const { output, ...routed } = expertsBlock(x, layer, routing.length, experts, parts);
        routing.push(routed);
        x = output;
      } else x = feedForwardBlock(x, layer, parts);
    }
    return { hidden: x, routing };
  },
};
