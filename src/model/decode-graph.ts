// One step of generation with cached keys and values. New tokens of a batch of sequences go in; log-probs of the next
// token, routes and the new cache rows come out. Caches are inputs, which ONNX Runtime reads in place. The caller
// writes the new rows itself, because ONNX Runtime would copy a whole cache at every step if an output aliased it.
import { add, cast, compare, where } from "../tensor/elementwise.ts";
import { type Dim, Graph, type Tensor } from "../tensor/graph.ts";
import { gatherRows } from "../tensor/indexing.ts";
import { matmul } from "../tensor/linear.ts";
import { swiglu } from "../tensor/network.ts";
import { logSoftmax, softmax } from "../tensor/reductions.ts";
import { concat, reshape, zeros } from "../tensor/shaping.ts";
import { type BlockParts, groupedLength, groupQueries, runExpertsOnTheirTokens } from "./blocks.ts";
import type { ExpertsConfig, ModelConfig } from "./config.ts";
import { type Parameters, parameterShapes } from "./parameters.ts";
import { languageHead, transformer } from "./transformer.ts";

/**
 * How experts run. `dense` runs all experts on all tokens, unused ones with gate 0: fastest for one new token per
 * sequence and few experts. `split` runs each expert on its own tokens: fastest for many tokens. A model without
 * experts has the same graph either way.
 */
export type ExpertMode = "dense" | "split";

/** Far below every score and still finite, so that softmax over a fully masked row is not NaN. */
const MASKED = -1e9;

/**
 * Inputs: `tokens` i32 [B, T] (right-padded), `positions` i64 [B, T], `cached` i32 [B] rows in the cache,
 * `last` i32 [B] flat place (b·T + t) of the last real token, `inverse.temperatures` [B, 1], and per layer `keys.<l>`,
 * `values.<l>` [B, Hkv, S, headDim].
 * Outputs: `log.probs` [B, V] of the token after `last`, `routes` i32 [L, B·T, k] of a model with experts, and per
 * layer `new.keys.<l>`, `new.values.<l>` [B, Hkv, T, headDim].
 */
export function buildDecodeGraph(config: ModelConfig, mode: ExpertMode): Graph {
  const graph = new Graph();
  const weight = weightInputs(graph, config);
  const tokens = graph.input("tokens", ["B", "T"], "i32");
  const positions = graph.input("positions", ["B", "T"], "i64");
  const cached = graph.input("cached", ["B"], "i32");
  const last = graph.input("last", ["B"], "i32");
  const cacheShape = ["B", config.keyValueHeadCount, "S", config.headDim];
  const keyCaches = Array.from({ length: config.layerCount }, (_, layer) =>
    graph.input(`keys.${layer}`, cacheShape),
  );
  const valueCaches = keyCaches.map((_, layer) => graph.input(`values.${layer}`, cacheShape));
  const cacheMask = maskOfCache(cached);
  const newMask = maskOfNewTokens(graph, config);
  const parts = {
    config,
    weight,
    positions,
    attend: (layer: number, query: Tensor, key: Tensor, value: Tensor): Tensor => {
      graph.output(`new.keys.${layer}`, key);
      graph.output(`new.values.${layer}`, value);
      return attendCached(
        { query, key, value, keys: keyCaches[layer], values: valueCaches[layer] },
        cacheMask,
        newMask,
        config,
      );
    },
    runExperts: mode === "split" ? runExpertsOnTheirTokens(weight) : runAllExperts(graph),
  };
  const { hidden, routing } = transformer(graph, reshape(tokens, ["B*T"]), parts);
  const logits = languageHead(gatherRows(hidden, last), parts);
  const scaled = graph.node("Mul", [logits, graph.input("inverse.temperatures", ["B", 1])], {
    shape: logits.shape,
  });
  graph.output("log.probs", logSoftmax(scaled));
  const { experts } = config;
  if (experts !== undefined) {
    const layered = routing.map(({ routes }) => reshape(routes, [1, "B*T", experts.perToken]));
    graph.output("routes", concat(layered, 0));
  }
  return graph;
}

/** Weights as a sampler's graphs read them: those of the checkpoint, and for `dense` with the experts side by side. */
export function decodeWeights(config: ModelConfig, parameters: Parameters, mode: ExpertMode): Parameters {
  const { experts, hiddenSize } = config;
  if (mode === "split" || experts === undefined) return parameters;
  const weights = new Map(parameters);
  for (const layer of experts.layers) {
    for (const part of ["gate_proj", "up_proj", "down_proj"] as const) {
      weights.set(
        `experts.${layer}.${part}`,
        expertsSideBySide(experts, hiddenSize, parameters, layer, part),
      );
    }
    for (const name of parameters.keys())
      if (name.startsWith(`model.layers.${layer}.mlp.experts.`)) weights.delete(name);
  }
  return weights;
}

/** Makes a weight an input when it is first used, so that a graph asks only for weights that it reads. */
function weightInputs(graph: Graph, config: ModelConfig): (name: string) => Tensor {
  const shapes = parameterShapes(config, "language");
  const inputs = new Map<string, Tensor>();
  return name => {
    const known = inputs.get(name);
    if (known !== undefined) return known;
    const shape = shapes.get(name);
    if (shape === undefined) throw new Error(`the model has no parameter ${name}`);
    const input = graph.input(name, shape);
    inputs.set(name, input);
    return input;
  };
}

/** Runs all experts in three products: x @ [D, E·f], gates spread over each expert's columns, @ [E·f, D]. */
function runAllExperts(graph: Graph): BlockParts["runExperts"] {
  return (layer, { count: E, intermediateSize: f }, x, routes, gates) => {
    const [tokens, D] = x.shape;
    const gate = matmul(x, graph.input(`experts.${layer}.gate_proj`, [E * f, D]), { transposeB: true });
    const up = matmul(x, graph.input(`experts.${layer}.up_proj`, [E * f, D]), { transposeB: true });
    const spread = graph.node("ScatterElements", [zeros(x, [tokens, E]), routes, gates], {
      shape: [tokens, E],
      attributes: { axis: 1 },
    });
    const perExpert = reshape(swiglu(gate, up), [tokens, E, f]);
    const gated = graph.node("Mul", [perExpert, reshape(spread, [tokens, E, 1])], { shape: [tokens, E, f] });
    return matmul(reshape(gated, [tokens, E * f]), graph.input(`experts.${layer}.down_proj`, [E * f, D]));
  };
}

function expertsSideBySide(
  { count: E, intermediateSize: f }: ExpertsConfig,
  D: number,
  parameters: Parameters,
  layer: number,
  part: "gate_proj" | "up_proj" | "down_proj",
) {
  const data = new Float32Array(E * f * D);
  for (let expert = 0; expert < E; expert++) {
    const source = parameters.get(`model.layers.${layer}.mlp.experts.${expert}.${part}.weight`);
    if (source === undefined) throw new Error(`expert ${expert} of layer ${layer} has no ${part}`);
    const block = data.subarray(expert * f * D, (expert + 1) * f * D);
    if (part === "down_proj") transposeInto(block, source.data, D, f);
    else block.set(source.data);
  }
  return { shape: [E * f, D], data };
}

function transposeInto(out: Float32Array, data: Float32Array, rows: number, columns: number): void {
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) out[column * rows + row] = data[row * columns + column];
  }
}

interface CachedAttention {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  readonly keys: Tensor;
  readonly values: Tensor;
}

/**
 * Takes one softmax over cached and new positions together; the products with their values are made apart and added.
 */
function attendCached(
  { query, key, value, keys, values }: CachedAttention,
  cacheMask: Tensor,
  newMask: Tensor,
  config: ModelConfig,
): Tensor {
  const { graph } = query;
  const grouped = groupQueries(query, config);
  const product = { transposeB: true, alpha: config.headDim ** -0.5 };
  const toCache = add(matmul(grouped, keys, product), cacheMask);
  const toNew = add(matmul(grouped, key, product), newMask);
  const rows = grouped.shape[2];
  const shapeOver = (columns: Dim): Dim[] => ["B", config.keyValueHeadCount, rows, columns];
  const sizes = graph.node("Concat", [graph.dim("S"), graph.dim("T")], {
    shape: [2],
    dtype: "i64",
    attributes: { axis: 0 },
  });
  const weights = softmax(
    graph.node("Concat", [toCache, toNew], { shape: shapeOver("S+T"), attributes: { axis: 3 } }),
  );
  const [onCache, onNew] = graph.nodeOutputs(
    "Split",
    [weights, sizes],
    [{ shape: shapeOver("S") }, { shape: shapeOver("T") }],
    { attributes: { axis: 3 } },
  );
  return reshape(add(matmul(onCache, values), matmul(onNew, value)), query.shape);
}

/** Mask [B, 1, 1, S]: 0 on filled rows of each sequence's cache, MASKED elsewhere. */
function maskOfCache(cached: Tensor): Tensor {
  const { graph } = cached;
  const filled = compare("Less", countingUp(graph, "S"), reshape(cached, ["B", 1]));
  return reshape(where(filled, graph.scalar(0), graph.scalar(MASKED)), ["B", 1, 1, "S"]);
}

/** Mask [1, 1, group·T, T]: causal among the new tokens, repeated for the queries that share a key head. */
function maskOfNewTokens(graph: Graph, config: ModelConfig): Tensor {
  const places = countingUp(graph, "T");
  const earlier = compare("LessOrEqual", places, reshape(places, ["T", 1]));
  const mask = where(earlier, graph.scalar(0), graph.scalar(MASKED));
  const group = config.headCount / config.keyValueHeadCount;
  const repeated = graph.node(
    "Expand",
    [reshape(mask, [1, "T", "T"]), graph.shapeTensor([group, "T", "T"])],
    {
      shape: [group, "T", "T"],
    },
  );
  return reshape(repeated, [1, 1, groupedLength("T", config), "T"]);
}

/** The indices of a named dimension: 0, 1, … up to its size, i32. */
function countingUp(graph: Graph, dim: string): Tensor {
  const count = graph.node("Squeeze", [cast(graph.dim(dim), "i32")], { shape: [], dtype: "i32" });
  return graph.node("Range", [graph.scalar(0, "i32"), count, graph.scalar(1, "i32")], {
    shape: [dim],
    dtype: "i32",
  });
}
