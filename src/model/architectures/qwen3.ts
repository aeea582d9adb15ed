// Qwen3: grouped-query attention with normed queries and keys, and one feed-forward block in every layer.
// Source: transformers, models/qwen3/modeling_qwen3.py.
import { z } from "zod";
import { attentionBlock, attentionShapes, feedForwardBlock, feedForwardShapes } from "../blocks.ts";
import { decoderKeys, parseDecoder, readKeys, writeDecoder } from "../hugging-face-config.ts";
import type { Architecture } from "./table.ts";

const Keys = z.looseObject({
  ...decoderKeys("Qwen3ForCausalLM"),
  // transformers takes 128 where the key is missing, whatever the width is: never guess it.
  head_dim: z.int().positive(),
});

export const qwen3: Architecture = {
  parse: (json, file) => parseDecoder(readKeys(Keys, json, file), file),

  write: config => ({ architectures: ["Qwen3ForCausalLM"], ...writeDecoder(config) }),

  parameters: (config, layer) => {
    const at = `model.layers.${layer}`;
    return [
      ...attentionShapes(at, config),
      ...feedForwardShapes(`${at}.mlp`, config.hiddenSize, config.intermediateSize),
    ];
  },

  layers: (embedded, parts) => {
    let x = embedded;
    for (let layer = 0; layer < parts.config.layerCount; layer++)
      x = feedForwardBlock(attentionBlock(x, layer, parts), layer, parts);
    return { hidden: x, routing: [] };
  },
};
