// The blocks that architectures are made of, as graph code and as the parameters that each reads. Every block takes and
// gives the residual stream x [N, D].
import { add, mul } from "../tensor/elementwise.ts";
import type { Dim, Tensor } from "../tensor/graph.ts";
import { combine, dispatch, permuteRows } from "../tensor/indexing.ts";
import { matmul } from "../tensor/linear.ts";
import { type RopeTables, rmsNorm, rope, swiglu } from "../tensor/network.ts";
import { concat, reshape, split, transpose } from "../tensor/shaping.ts";
import type { NamedShape } from "./architectures/table.ts";
import type { ExpertsConfig, ModelConfig } from "./config.ts";
import { freeRoutes, gates, orderByExpert } from "./routing.ts";

/** How one graph reads the model's weights and treats attention and routing. */
export interface BlockParts {
  readonly config: ModelConfig;
  readonly weight: (name: string) => Tensor;
  /** i64 [B, T] */
  readonly positions: Tensor;
  readonly tables: RopeTables;
  /** Takes normed queries [B, H, T, headDim], keys and values [B, Hkv, T, headDim]; gives [B, H, T, headDim]. */
  readonly attend: (layer: number, query: Tensor, key: Tensor, value: Tensor) => Tensor;
  /** Runs the chosen experts on x [N, D] with gates [N, k]: the weighted sum [N, D]. */
  readonly runExperts: (
    layer: number,
    experts: ExpertsConfig,
    x: Tensor,
    routes: Tensor,
    gates: Tensor,
  ) => Tensor;
  /** Recorded expert ids i32 [N, k] of a MoE layer (counted among MoE layers); left out, tokens route freely. */
  readonly replayedRoutes?: (moeLayer: number, experts: ExpertsConfig) => Tensor;
}

/** What the router of one layer did: expert ids used i32 [N, k], router logits [N, E], gates [N, k]. */
export interface LayerRouting {
  readonly routes: Tensor;
  readonly logits: Tensor;
  readonly gates: Tensor;
}

/** x + attention(norm(x)), with queries and keys normed per head before they are rotated. */
export function attentionBlock(x: Tensor, layer: number, parts: BlockParts): Tensor {
  const { config, weight, positions, tables } = parts;
  const h = rmsNorm(x, weight(`model.layers.${layer}.input_layernorm.weight`), config.rmsNormEpsilon);
  const at = `model.layers.${layer}.self_attn`;
  const [batch, length] = positions.shape;
  const heads = (name: string, count: number, normName?: string): Tensor => {
    const projected = matmul(h, weight(`${at}.${name}.weight`), { transposeB: true });
    const perHead = reshape(projected, [batch, length, count, config.headDim]);
    if (normName === undefined) return transpose(perHead, [0, 2, 1, 3]);
    const normed = rmsNorm(perHead, weight(`${at}.${normName}.weight`), config.rmsNormEpsilon);
    return rope(transpose(normed, [0, 2, 1, 3]), positions, tables);
  };
  const query = heads("q_proj", config.headCount, "q_norm");
  const key = heads("k_proj", config.keyValueHeadCount, "k_norm");
  const value = heads("v_proj", config.keyValueHeadCount);
  const attended = transpose(parts.attend(layer, query, key, value), [0, 2, 1, 3]);
  const flat = reshape(attended, [h.shape[0], config.headCount * config.headDim]);
  return add(x, matmul(flat, weight(`${at}.o_proj.weight`), { transposeB: true }));
}

/** Parameters of `attentionBlock`, and of the norm of the block that follows it. */
export function attentionShapes(at: string, config: ModelConfig): NamedShape[] {
  const { hiddenSize: D, headDim, headCount, keyValueHeadCount } = config;
  return [
    [`${at}.input_layernorm.weight`, [D]],
    [`${at}.self_attn.q_proj.weight`, [headCount * headDim, D]],
    [`${at}.self_attn.k_proj.weight`, [keyValueHeadCount * headDim, D]],
    [`${at}.self_attn.v_proj.weight`, [keyValueHeadCount * headDim, D]],
    [`${at}.self_attn.o_proj.weight`, [D, headCount * headDim]],
    [`${at}.self_attn.q_norm.weight`, [headDim]],
    [`${at}.self_attn.k_norm.weight`, [headDim]],
    [`${at}.post_attention_layernorm.weight`, [D]],
  ];
}

/** x + SwiGLU(norm(x)) */
export function feedForwardBlock(x: Tensor, layer: number, parts: BlockParts): Tensor {
  return add(x, feedForward(secondNorm(x, layer, parts), `model.layers.${layer}.mlp`, parts.weight));
}

export function feedForwardShapes(at: string, D: number, width: number): NamedShape[] {
  return [
    [`${at}.gate_proj.weight`, [width, D]],
    [`${at}.up_proj.weight`, [width, D]],
    [`${at}.down_proj.weight`, [D, width]],
  ];
}

/** x + Σ gate · expert(norm(x)) over the experts that the router chose, or chose when the tokens were sampled. */
export function expertsBlock(
  x: Tensor,
  layer: number,
  moeLayer: number,
  experts: ExpertsConfig,
  parts: BlockParts,
): LayerRouting & { readonly output: Tensor } {
  const h = secondNorm(x, layer, parts);
  const router = parts.weight(`model.layers.${layer}.mlp.gate.weight`);
  const logits = matmul(h, router, { transposeB: true });
  const routes = parts.replayedRoutes?.(moeLayer, experts) ?? freeRoutes(logits, experts.perToken);
  const chosenGates = gates(logits, routes, experts);
  const output = add(x, parts.runExperts(layer, experts, h, routes, chosenGates));
  return { output, routes, logits, gates: chosenGates };
}

/** One tensor per expert, [out, in]: the layout that transformers, vLLM, SGLang and Megatron-Bridge all read. */
export function expertsShapes(
  at: string,
  D: number,
  { count, intermediateSize }: ExpertsConfig,
): NamedShape[] {
  return [
    [`${at}.gate.weight`, [count, D]],
    ...Array.from({ length: count }, (_, expert) =>
      feedForwardShapes(`${at}.experts.${expert}`, D, intermediateSize),
    ).flat(),
  ];
}

/** Runs each expert on exactly its own tokens. The cost does not depend on how evenly the router spreads them. */
export function runExpertsOnTheirTokens(weight: BlockParts["weight"]): BlockParts["runExperts"] {
  return (layer, { count }, x, routes, gates) => {
    const order = orderByExpert(routes, count);
    const sizes = Array.from({ length: count }, (_, expert) => `tokens.${layer}.${expert}`);
    const mine = split(dispatch(x, order.source, order.position), 0, sizes, order.counts);
    const outputs = mine.map((tokens, expert) =>
      feedForward(tokens, `model.layers.${layer}.mlp.experts.${expert}`, weight),
    );
    const pairs = order.pair.shape[0];
    const together = concat(outputs, 0, { sizesTensor: order.counts, total: pairs });
    const flatGates = permuteRows(reshape(gates, [pairs, 1]), order.pair, reshape(order.position, [pairs]));
    return combine(mul(together, flatGates), order.source, order.position);
  };
}

/** Puts queries that share a key head next to each other: [B, H, T, d] to [B, Hkv, (H/Hkv)·T, d]. */
export function groupQueries(query: Tensor, config: ModelConfig): Tensor {
  const [batch, , length] = query.shape;
  return reshape(query, [batch, config.keyValueHeadCount, groupedLength(length, config), config.headDim]);
}

export function groupedLength(length: Dim, { headCount, keyValueHeadCount }: ModelConfig): Dim {
  const group = headCount / keyValueHeadCount;
  if (typeof length === "number") return length * group;
  return group === 1 ? length : `${length}*${group}`;
}

function secondNorm(x: Tensor, layer: number, { weight, config }: BlockParts): Tensor {
  return rmsNorm(x, weight(`model.layers.${layer}.post_attention_layernorm.weight`), config.rmsNormEpsilon);
}

function feedForward(x: Tensor, at: string, weight: (name: string) => Tensor): Tensor {
  const gate = matmul(x, weight(`${at}.gate_proj.weight`), { transposeB: true });
  const up = matmul(x, weight(`${at}.up_proj.weight`), { transposeB: true });
  return matmul(swiglu(gate, up), weight(`${at}.down_proj.weight`), { transposeB: true });
}
