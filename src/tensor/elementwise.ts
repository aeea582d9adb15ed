// Element-wise operations. Shapes broadcast as in NumPy; the reverse pass sums what was stretched.
import { broadcastShapes, type DType, type Graph, sameShape, type Tensor } from "./graph.ts";
import type { Primitive } from "./primitives.ts";

type Comparison = "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual";
type Plain = Extract<Primitive, "add" | "sub" | "mul" | "div" | "max" | "min">;

export const add = (a: Tensor, b: Tensor): Tensor => binary("add", "Add", a, b);
export const sub = (a: Tensor, b: Tensor): Tensor => binary("sub", "Sub", a, b);
export const mul = (a: Tensor, b: Tensor): Tensor => binary("mul", "Mul", a, b);
export const div = (a: Tensor, b: Tensor): Tensor => binary("div", "Div", a, b);
/** The larger of two; where they are equal the gradient goes to the first. */
export const max = (a: Tensor, b: Tensor): Tensor => binary("max", "Max", a, b);
/** The smaller of two; where they are equal the gradient goes to the first. */
const min = (a: Tensor, b: Tensor): Tensor => binary("min", "Min", a, b);

export function neg(x: Tensor): Tensor {
  return unary("neg", "Neg", x);
}

export function exp(x: Tensor): Tensor {
  return unary("exp", "Exp", x);
}

/** x bounded to [low, high]; outside the gradient is 0. */
export function clip(x: Tensor, low: number, high: number): Tensor {
  return min(max(x, x.graph.scalar(low)), x.graph.scalar(high));
}

/** `a` where the condition holds, else `b`. */
export function where(condition: Tensor, a: Tensor, b: Tensor): Tensor {
  const graph = a.graph;
  const shape = broadcastShapes(condition.shape, broadcastShapes(a.shape, b.shape));
  return graph.apply("where", [a, b], { condition }, () => ({
    outputs: [graph.node("Where", [condition, a, b], { shape, dtype: a.dtype })],
  }))[0];
}

/** Element-wise comparison; no gradient flows through it. */
export function compare(comparison: Comparison, a: Tensor, b: Tensor): Tensor {
  const shape = broadcastShapes(a.shape, b.shape);
  return a.graph.withoutTape(() => a.graph.node(comparison, [a, b], { shape, dtype: "bool" }));
}

/** The same value as a constant: no gradient flows back. */
export function stopGradient(x: Tensor): Tensor {
  return { ...x, differentiable: false };
}

const CAST_TO: Record<DType, number> = { f32: 1, i32: 6, i64: 7, bool: 9 };

/** Converts the element type; only for values without a gradient. */
export function cast(x: Tensor, dtype: DType): Tensor {
  if (x.dtype === dtype) return x;
  return x.graph.node("Cast", [x], { shape: x.shape, dtype, attributes: { to: CAST_TO[dtype] } });
}

function binary(primitive: Plain, op: string, a: Tensor, b: Tensor): Tensor {
  const shape = sameShape(a.shape, b.shape) ? a.shape : broadcastShapes(a.shape, b.shape);
  return a.graph.apply(primitive, [a, b], undefined, () => ({
    outputs: [a.graph.node(op, [a, b], { shape, dtype: a.dtype })],
  }))[0];
}

function unary(primitive: "neg" | "exp", op: string, x: Tensor): Tensor {
  const graph: Graph = x.graph;
  return graph.apply(primitive, [x], undefined, () => ({
    outputs: [graph.node(op, [x], { shape: x.shape, dtype: x.dtype })],
  }))[0];
}
