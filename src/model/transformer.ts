// The layers of Qwen3-MoE as graph code, shared by training and decoding: they differ in how attention sees earlier
// tokens and in how experts are run, and hand that in.
import { add, mul } from "../tensor/elementwise.ts";
import type { Dim, Graph, Tensor } from "../tensor/graph.ts";
import { combine, dispatch, embed, permuteRows } from "../tensor/indexing.ts";
import { matmul } from "../tensor/linear.ts";
import { type RopeTables, rmsNorm, rope, swiglu } from "../tensor/network.ts";
import { concat, reshape, split, transpose } from "../tensor/shaping.ts";
import type { ModelConfig } from "./config.ts";
import { freeRoutes, gates, orderByExpert } from "./routing.ts";

/** How one graph reads the model's weights and treats attention and routing. */
export interface TransformerParts {
  readonly config: ModelConfig;
  readonly weight: (name: string) => Tensor;
  /** i64 [B, T] */
  readonly positions: Tensor;
  /** Normed queries [B, H, T, headDim], keys and values [B, Hkv, T, headDim]; gives [B, H, T, headDim]. */
  readonly attend: (layer: number, query: Tensor, key: Tensor, value: Tensor) => Tensor;
  /** Runs the chosen experts on x [N, D] with gates [N, k]: the weighted sum [N, D]. */
  readonly runExperts: (layer: number, x: Tensor, routes: Tensor, gates: Tensor) => Tensor;
  /** Recorded expert ids i32 [N, k] of a MoE layer (counted among MoE layers); undefined routes freely. */
  readonly replayedRoutes?: (moeLayer: number) => Tensor;
}

export interface TransformerOutput {
  /** Final-norm output, [N, D]. */
  readonly hidden: Tensor;
  /** Per MoE layer: expert ids used i32 [N, k], router logits [N, E], gates [N, k]. */
  readonly routing: readonly { readonly routes: Tensor; readonly logits: Tensor; readonly gates: Tensor }[];
}

/** @param ids i32 [N] with N = B·T, row-major */
export function transformer(graph: Graph, ids: Tensor, parts: TransformerParts): TransformerOutput {
  const { config, weight } = parts;
  const tables = ropeTables(graph, config);
  const norm = (x: Tensor, name: string): Tensor => rmsNorm(x, weight(name), config.rmsNormEpsilon);
  const routing: TransformerOutput["routing"][number][] = [];
  let x = embed(weight("model.embed_tokens.weight"), ids);
  for (let layer = 0; layer < config.layerCount; layer++) {
    const at = `model.layers.${layer}`;
    x = add(x, attentionBlock(norm(x, `${at}.input_layernorm.weight`), layer, tables, parts));
    const h = norm(x, `${at}.post_attention_layernorm.weight`);
    if (!config.moeLayers.includes(layer)) {
      x = add(x, feedForward(h, `${at}.mlp`, weight));
      continue;
    }
    const logits = matmul(h, weight(`${at}.mlp.gate.weight`), { transposeB: true });
    const routes = parts.replayedRoutes?.(routing.length) ?? freeRoutes(logits, config.expertsPerToken);
    const chosenGates = gates(logits, routes, config);
    routing.push({ routes, logits, gates: chosenGates });
    x = add(x, parts.runExperts(layer, h, routes, chosenGates));
  }
  return { hidden: norm(x, "model.norm.weight"), routing };
}

/** Each expert on exactly its own tokens. Cost does not depend on how evenly the router spreads them. */
export function runExpertsOnTheirTokens(config: ModelConfig, weight: (name: string) => Tensor) {
  return (layer: number, x: Tensor, routes: Tensor, gates: Tensor): Tensor => {
    const { expertCount } = config;
    const order = orderByExpert(routes, expertCount);
    const sizes = Array.from({ length: expertCount }, (_, expert) => `tokens.${layer}.${expert}`);
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

/** Logits over the vocabulary, [M, V]; a tied model uses its embedding. */
export function languageHead(
  hidden: Tensor,
  { config, weight }: Pick<TransformerParts, "config" | "weight">,
): Tensor {
  const name = config.tiedEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight";
  return matmul(hidden, weight(name), { transposeB: true });
}

function attentionBlock(h: Tensor, layer: number, tables: RopeTables, parts: TransformerParts): Tensor {
  const { config, weight, positions } = parts;
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
  return matmul(flat, weight(`${at}.o_proj.weight`), { transposeB: true });
}

function feedForward(x: Tensor, at: string, weight: (name: string) => Tensor): Tensor {
  const gate = matmul(x, weight(`${at}.gate_proj.weight`), { transposeB: true });
  const up = matmul(x, weight(`${at}.up_proj.weight`), { transposeB: true });
  return matmul(swiglu(gate, up), weight(`${at}.down_proj.weight`), { transposeB: true });
}

/** cos and sin of position · theta^(−2i/headDim), computed in double precision. */
function ropeTables(graph: Graph, { headDim, maxPositions, ropeTheta }: ModelConfig): RopeTables {
  const half = headDim / 2;
  const table = (value: (angle: number) => number): Tensor => {
    const data = new Float32Array(maxPositions * half);
    for (let i = 0; i < data.length; i++) {
      const position = Math.floor(i / half);
      data[i] = value(position * ropeTheta ** ((-2 * (i % half)) / headDim));
    }
    return graph.constant(data, [maxPositions, half]);
  };
  return { cos: table(Math.cos), sin: table(Math.sin), negativeSin: table(angle => -Math.sin(angle)) };
}

/** Head groups: queries that share a key head lie next to each other, [B, H, T, d] to [B, Hkv, (H/Hkv)·T, d]. */
export function groupQueries(query: Tensor, config: ModelConfig): Tensor {
  const [batch, , length] = query.shape;
  return reshape(query, [batch, config.keyValueHeadCount, groupedLength(length, config), config.headDim]);
}

export function groupedLength(length: Dim, { headCount, keyValueHeadCount }: ModelConfig): Dim {
  const group = headCount / keyValueHeadCount;
  if (typeof length === "number") return length * group;
  return group === 1 ? length : `${length}*${group}`;
}
