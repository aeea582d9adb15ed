// Chooses the experts of each token. Free routing takes the k highest router logits. Replayed routing takes the
// recorded set with gates from the live router logits, so that the router still learns (R3, arXiv 2510.11370).
import { cast, compare } from "../tensor/elementwise.ts";
import type { Dim, Graph, Tensor } from "../tensor/graph.ts";
import { pickLast } from "../tensor/indexing.ts";
import { softmax } from "../tensor/reductions.ts";
import { reshape } from "../tensor/shaping.ts";
import type { ExpertsConfig, ModelConfig } from "./config.ts";

/** Shape of the routes that a model's tokens take; a dense model has none. */
export function routeLayout({ experts }: ModelConfig) {
  return (
    experts && {
      layerCount: experts.layers.length,
      expertsPerToken: experts.perToken,
      expertCount: experts.count,
    }
  );
}

/** The place of each (token, expert) pair when all pairs are laid out expert by expert. Integers without gradient. */
export interface ExpertOrder {
  /** i32 [N·k]: token of each place. */
  readonly source: Tensor;
  /** i32 [N·k]: flattened (token, choice) index of each place. */
  readonly pair: Tensor;
  /** i32 [N, k]: place of each (token, choice). */
  readonly position: Tensor;
  /** i64 [E]: number of places of each expert. */
  readonly counts: Tensor;
}

/**
 * Ids of the k largest router logits, i32 [N, k]. Among equal logits the lower id comes first, as ONNX TopK promises.
 */
export function freeRoutes(logits: Tensor, expertsPerToken: number): Tensor {
  const graph = logits.graph;
  const shape = [logits.shape[0], expertsPerToken];
  return graph.withoutTape(() => {
    const [, ids] = graph.nodeOutputs(
      "TopK",
      [logits, graph.integers([expertsPerToken])],
      [{ shape }, { shape, dtype: "i64" }],
      { attributes: { axis: -1 } },
    );
    return cast(ids, "i32");
  });
}

/**
 * Gates of the chosen experts, [N, k], with gradient into the router.
 *
 *   normalised:  g_e = exp(s_e) / Σ_{e' chosen} exp(s_e')      else  g_e = exp(s_e) / Σ_{all e'} exp(s_e')
 */
export function gates(logits: Tensor, routes: Tensor, { normalizeGates }: ExpertsConfig): Tensor {
  return normalizeGates ? softmax(pickLast(logits, routes)) : pickLast(softmax(logits), routes);
}

/** Sorts (token, choice) pairs by expert. Counting sort is stable, so the order never depends on threads. */
export function orderByExpert(routes: Tensor, expertCount: number): ExpertOrder {
  const graph = routes.graph;
  const [tokens, choices] = [routes.shape[0], Number(routes.shape[1])];
  const pairs: Dim = typeof tokens === "number" ? tokens * choices : `${tokens}*${choices}`;
  return graph.withoutTape(() => {
    const int = (
      op: string,
      inputs: (Tensor | undefined)[],
      shape: readonly Dim[],
      attributes = {},
    ): Tensor => graph.node(op, inputs, { shape, dtype: "i32", attributes });
    const expert = reshape(routes, [pairs]);
    const column = reshape(expert, [pairs, 1]);
    const everyExpert = graph.constant(
      Int32Array.from({ length: expertCount }, (_, id) => id),
      [expertCount],
    );
    const chosen = cast(compare("Equal", column, everyExpert), "i32");
    const upToHere = int("CumSum", [chosen, graph.scalar(0, "i32")], [pairs, expertCount]);
    const counts = int("ReduceSum", [chosen, graph.integers([0])], [expertCount], { keepdims: 0 });
    const firstPlace = int("CumSum", [counts, graph.scalar(0, "i32")], [expertCount], { exclusive: 1 });
    const rank = reshape(int("GatherElements", [upToHere, column], [pairs, 1], { axis: 1 }), [pairs]);
    const start = int("Gather", [firstPlace, expert], [pairs], { axis: 0 });
    const place = int("Sub", [int("Add", [start, rank], [pairs]), graph.scalar(1, "i32")], [pairs]);
    const every = everyIndex(graph, expert, pairs);
    const pair = int("ScatterElements", [every, place, every], [pairs], { axis: 0 });
    return {
      source: int("Div", [pair, graph.scalar(choices, "i32")], [pairs]),
      pair,
      position: reshape(place, [tokens, choices]),
      counts: cast(counts, "i64"),
    };
  });
}

/** The indices of a vector: 0, 1, … up to its length, i32. */
function everyIndex(graph: Graph, vector: Tensor, length: Dim): Tensor {
  const count = graph.node(
    "Squeeze",
    [cast(graph.node("Shape", [vector], { shape: [1], dtype: "i64" }), "i32")],
    {
      shape: [],
      dtype: "i32",
    },
  );
  return graph.node("Range", [graph.scalar(0, "i32"), count, graph.scalar(1, "i32")], {
    shape: [length],
    dtype: "i32",
  });
}
