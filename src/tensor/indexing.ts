// Operations that pick rows or elements by index. ScatterND with reduction "add" is never used: on several threads it
// loses updates for repeated indices (onnxruntime issues 18048 and 23396, seen in 1.30).
import { productDim, type Tensor } from "./graph.ts";
import { reduceSum } from "./reductions.ts";
import { reshape, zeros } from "./shaping.ts";

/** table[ids]: [V, D] and [..] give [.., D]. */
export function embed(table: Tensor, ids: Tensor): Tensor {
  return table.graph.applyOne([table], () => [
    gatherRows(table, ids),
    dy => [() => scatterAddRows(zeros(table, table.shape), ids, dy)],
  ]);
}

/** Rows `index` [M] of x [N, ..], each at most once; `inverse` [N] holds the place of each row in the result, or M. */
export function takeRows(x: Tensor, index: Tensor, inverse: Tensor): Tensor {
  // Rows that were not taken read the row of zeros behind the end.
  const rule = (dy: Tensor) => {
    const [rows, ...width] = dy.shape;
    const padded = dy.graph.node("Concat", [dy, zeros(dy, [1, ...width])], {
      shape: [`${rows}+1`, ...width],
      attributes: { axis: 0 },
    });
    return gatherRows(padded, inverse);
  };
  return x.graph.applyOne([x], () => [gatherRows(x, index), dy => [() => rule(dy)]]);
}

/** x [N, ..] in the order `order` [N], a permutation; `inverse` undoes it. */
export function permuteRows(x: Tensor, order: Tensor, inverse: Tensor): Tensor {
  return x.graph.applyOne([x], () => [gatherRows(x, order), dy => [() => gatherRows(dy, inverse)]]);
}

/** Rows of tokens x [N, D] for their experts: [N·k, D]. source [N·k] names the token, position [N, k] where each copy went. */
export function dispatch(x: Tensor, source: Tensor, position: Tensor): Tensor {
  return x.graph.applyOne([x], () => [gatherRows(x, source), dy => [() => combine(dy, source, position)]]);
}

/** Sum over each token's k rows: y [N·k, D] gives [N, D]. The dual of dispatch. */
export function combine(y: Tensor, source: Tensor, position: Tensor): Tensor {
  const [tokens] = position.shape;
  const width = y.shape[1];
  return y.graph.applyOne([y], () => [
    reshape(reduceSum(gatherRows(y, position), [1]), [tokens, width]),
    dy => [() => gatherRows(dy, source)],
  ]);
}

/** x[.., index] along the last axis: x [N, E] and index [N, k] give [N, k]; the indices of a row differ. */
export function pickLast(x: Tensor, index: Tensor): Tensor {
  const scatter = (dy: Tensor) =>
    x.graph.node("ScatterElements", [zeros(x, x.shape), index, dy], {
      shape: x.shape,
      attributes: { axis: x.shape.length - 1, reduction: "add" },
    });
  return x.graph.applyOne([x], () => [
    x.graph.node("GatherElements", [x, index], {
      shape: index.shape,
      dtype: x.dtype,
      attributes: { axis: -1 },
    }),
    dy => [() => scatter(dy)],
  ]);
}

/** Plain Gather along the first axis, without a place on the tape. */
export function gatherRows(x: Tensor, index: Tensor): Tensor {
  const shape = [...index.shape, ...x.shape.slice(1)];
  return x.graph.node("Gather", [x, index], { shape, dtype: x.dtype, attributes: { axis: 0 } });
}

/** Zeros of [rows, D] plus `values` [.., D] added at row `ids` [..]. Repeated ids add up in a fixed order. */
function scatterAddRows(zeros: Tensor, ids: Tensor, values: Tensor): Tensor {
  const graph = values.graph;
  const [rows, width] = zeros.shape;
  const count = productDim(ids.shape);
  const column = reshape(ids, [count, 1]);
  const index = graph.node("Expand", [column, graph.shapeTensor([count, width])], {
    shape: [count, width],
    dtype: ids.dtype,
  });
  return graph.node("ScatterElements", [zeros, index, reshape(values, [count, width])], {
    shape: [rows, width],
    attributes: { axis: 0, reduction: "add" },
  });
}
