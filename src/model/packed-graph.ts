// The model over packed rows (packing.ts), for training and scoring: graph inputs, block-diagonal causal attention, and
// the output of the wanted rows.
import { add, cast, compare, where } from "../tensor/elementwise.ts";
import { Graph, type Tensor } from "../tensor/graph.ts";
import { takeRows } from "../tensor/indexing.ts";
import { matmul } from "../tensor/linear.ts";
import { softmax } from "../tensor/reductions.ts";
import type { Feeds } from "../tensor/session.ts";
import { reshape } from "../tensor/shaping.ts";
import { groupQueries, runExpertsOnTheirTokens } from "./blocks.ts";
import type { ExpertsConfig, ModelConfig } from "./config.ts";
import type { PackedRows } from "./packing.ts";
import { type Head, parameterShapes } from "./parameters.ts";
import { languageHead, type TransformerOutput, transformer } from "./transformer.ts";

export interface PackedGraph {
  readonly graph: Graph;
  /** Inputs for the parameters, by name, in checkpoint order. */
  readonly parameters: ReadonlyMap<string, Tensor>;
  /** Logits [M, V] or values [M, 1] of the wanted rows. */
  readonly head: Tensor;
  readonly model: TransformerOutput;
  /** i64 [R, T] input of positions; its shape names the sizes of the batch. */
  readonly positions: Tensor;
}

export interface PackedGraphOptions {
  readonly head: Head;
  /** True reads recorded routes from inputs `routes.<MoE layer>`; false lets every token route freely. */
  readonly replay: boolean;
}

/** Far below every score and still finite, so that softmax over a fully masked row is not NaN. */
const MASKED = -1e9;

export function buildPackedGraph(config: ModelConfig, { head, replay }: PackedGraphOptions): PackedGraph {
  const graph = new Graph();
  const parameters = new Map(
    [...parameterShapes(config, head)].map(([name, shape]) => [name, graph.parameter(name, shape)] as const),
  );
  const weight = (name: string): Tensor => {
    const tensor = parameters.get(name);
    if (tensor === undefined) throw new Error(`the model has no parameter ${name}`);
    return tensor;
  };
  const positions = graph.input("positions", ["R", "T"], "i64");
  const ids = graph.input("tokens", ["R*T"], "i32");
  const mask = blockDiagonalMask(graph.input("segments", ["R", "T"], "i32"));
  const parts = {
    config,
    weight,
    positions,
    attend: (_: number, query: Tensor, key: Tensor, value: Tensor) => attend(query, key, value, mask, config),
    runExperts: runExpertsOnTheirTokens(weight),
    ...(replay && {
      replayedRoutes: (layer: number, { perToken }: ExpertsConfig) =>
        graph.input(`routes.${layer}`, ["R*T", perToken], "i32"),
    }),
  };
  const model = transformer(graph, ids, parts);
  const wanted = takeRows(
    model.hidden,
    graph.input("rows", ["M"], "i32"),
    graph.input("rows.inverse", ["R*T"], "i32"),
  );
  const top =
    head === "language"
      ? languageHead(wanted, parts)
      : matmul(wanted, weight("value_head.weight"), { transposeB: true });
  return { graph, parameters, head: top, model, positions };
}

/** Feeds of a packed batch. @param rows places in the flattened rows, each at most once */
export function packedFeeds(packed: PackedRows, rows: Int32Array): Feeds {
  const { rowCount, rowLength } = packed;
  const size = rowCount * rowLength;
  const inverse = new Int32Array(size).fill(rows.length);
  rows.forEach((place, index) => {
    inverse[place] = index;
  });
  return {
    tokens: { data: packed.tokens, shape: [size] },
    positions: { data: packed.positions, shape: [rowCount, rowLength] },
    segments: { data: packed.segments, shape: [rowCount, rowLength] },
    rows: { data: rows, shape: [rows.length] },
    "rows.inverse": { data: inverse, shape: [size] },
  };
}

/**
 * Lays the recorded routes of each sequence ([fed tokens, L, k], row-major) out as the packed rows. Padding gets k
 * different experts, because a row may not name an expert twice.
 */
export function routeFeeds(
  packed: PackedRows,
  routes: readonly (Uint8Array | Uint16Array)[],
  { layers: moeLayers, perToken, count }: ExpertsConfig,
): Feeds {
  const size = packed.rowCount * packed.rowLength;
  const layers = moeLayers.length;
  const feeds: Record<string, Feeds[string]> = {};
  for (let layer = 0; layer < layers; layer++) {
    const data = Int32Array.from({ length: size * perToken }, (_, i) => (i % perToken) % count);
    routes.forEach((rows, sequence) => {
      const tokens = rows.length / (layers * perToken);
      for (let t = 0; t < tokens; t++) {
        for (let choice = 0; choice < perToken; choice++) {
          const to = (packed.starts[sequence] + t) * perToken + choice;
          data[to] = rows[(t * layers + layer) * perToken + choice];
        }
      }
    });
    feeds[`routes.${layer}`] = { data, shape: [size, perToken] };
  }
  return feeds;
}

/** Mask [R, 1, T, T]: 0 where a position may look (itself and earlier places of its own sequence), MASKED elsewhere. */
function blockDiagonalMask(segments: Tensor): Tensor {
  const { graph } = segments;
  const count = graph.node("Squeeze", [graph.dim("T")], { shape: [], dtype: "i64" });
  const places = graph.node("Range", [graph.scalar(0, "i64"), count, graph.scalar(1, "i64")], {
    shape: ["T"],
    dtype: "i64",
  });
  const column = (x: Tensor): Tensor => reshape(x, [...x.shape, 1]);
  const earlier = compare("LessOrEqual", places, column(places));
  const sameSequence = compare("Equal", reshape(segments, ["R", 1, "T"]), column(segments));
  const visible = graph.node("And", [earlier, sameSequence], { shape: ["R", "T", "T"], dtype: "bool" });
  return reshape(where(cast(visible, "bool"), graph.scalar(0), graph.scalar(MASKED)), ["R", 1, "T", "T"]);
}

/** Softmax attention with grouped key heads. */
function attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, config: ModelConfig): Tensor {
  const [batch, heads, length] = query.shape;
  const scores = matmul(groupQueries(query, config), key, {
    transposeB: true,
    alpha: config.headDim ** -0.5,
  });
  const weights = softmax(add(reshape(scores, [batch, heads, length, length]), mask));
  const grouped = reshape(weights, scores.shape);
  return reshape(matmul(grouped, value), query.shape);
}
