// Numbers that overflow inside a norm. It divides by the root of a mean of squares, and squares of single precision are
// infinite from 1.8e19 on: the norm then gives zeros, and a policy of broken weights looks like one that is undecided.
import type { Graph } from "../../tensor/graph.ts";

/** Output of `outputNormSize`; looked at like every other number of a run. */
export const NORM_SIZE = "norm.size";

/** Adds the output `norm.size`, []: the largest root of a mean of squares in any norm so far; infinite if one overflowed. */
export function outputNormSize(graph: Graph): void {
  graph.withoutTape(() => {
    const smallest = graph.nodes
      .filter(({ op }) => op === "SimplifiedLayerNormalization")
      .map(({ outputs: [, inverse] }) =>
        graph.node("ReduceMin", [inverse], { shape: [], attributes: { keepdims: 0 } }),
      );
    graph.output(
      NORM_SIZE,
      graph.node("Reciprocal", [graph.node("Min", smallest, { shape: [] })], { shape: [] }),
    );
  });
}
