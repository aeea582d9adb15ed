// The closed list of differentiable operations with the settings each carries. backward.ts holds one rule for each,
// so an operation without a rule does not pass the type check.
import type { Dim, Tensor } from "./graph.ts";

export interface Primitives {
  add: undefined;
  sub: undefined;
  mul: undefined;
  div: undefined;
  max: undefined;
  min: undefined;
  neg: undefined;
  exp: undefined;
  where: { readonly condition: Tensor };
  reduceSum: { readonly axes: readonly number[] };
  reduceMean: { readonly axes: readonly number[]; readonly count: number };
  expand: undefined;
  reshape: undefined;
  transpose: { readonly permutation: readonly number[] };
  concat: { readonly axis: number; readonly sizes: readonly Dim[]; readonly sizesTensor?: Tensor };
  split: { readonly axis: number; readonly sizesTensor?: Tensor };
  matmul: { readonly transposeA: boolean; readonly transposeB: boolean; readonly alpha: number };
  /** Rows of a table by id; a row may be taken many times. */
  embed: { readonly ids: Tensor };
  /** Some rows of a tensor, each at most once; `inverse` says where a row went, or points one past the end. */
  takeRows: { readonly inverse: Tensor };
  /** All rows in another order; `inverse` undoes it. */
  permuteRows: { readonly inverse: Tensor };
  /** Each token's row once for each of its experts, in the order of the experts; `position` is where each copy lies. */
  dispatch: { readonly position: Tensor; readonly source: Tensor };
  /** Sum of a token's rows over its experts: the dual of dispatch. */
  combine: { readonly position: Tensor; readonly source: Tensor };
  /** One element (or several different ones) of each row along the last axis. */
  pickLast: { readonly index: Tensor };
  softmax: undefined;
  logSoftmax: undefined;
  /** gate · sigmoid(gate) · up */
  swiglu: undefined;
  rmsNorm: undefined;
  rope: { readonly positions: Tensor; readonly cos: Tensor; readonly negativeSin: Tensor };
}
export type Primitive = keyof Primitives;
