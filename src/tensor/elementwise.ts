// Element-wise operations. Shapes broadcast as in NumPy; the reverse pass sums what was stretched.
import { broadcastShapes, type DType, sameShape, type Tensor } from "./graph.ts";

type Comparison = "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual";

export const add = (a: Tensor, b: Tensor): Tensor => binary("Add", a, b, dy => [() => dy, () => dy]);
export const sub = (a: Tensor, b: Tensor): Tensor => binary("Sub", a, b, dy => [() => dy, () => neg(dy)]);
export const mul = (a: Tensor, b: Tensor): Tensor =>
  binary("Mul", a, b, dy => [() => mul(dy, b), () => mul(dy, a)]);

/** The larger of two; where they are equal the gradient goes to the first. */
export const max = (a: Tensor, b: Tensor): Tensor =>
  binary("Max", a, b, dy => choose(dy, compare("GreaterOrEqual", a, b)));

/** The smaller of two; where they are equal the gradient goes to the first. */
const min = (a: Tensor, b: Tensor): Tensor =>
  binary("Min", a, b, dy => choose(dy, compare("LessOrEqual", a, b)));

/** x bounded to [low, high]; outside the gradient is 0. */
export function clip(x: Tensor, low: number, high: number): Tensor {
  return min(max(x, x.graph.scalar(low)), x.graph.scalar(high));
}

export function neg(x: Tensor): Tensor {
  return x.graph.applyOne([x], () => [unary("Neg", x), dy => [() => neg(dy)]]);
}

export function exp(x: Tensor): Tensor {
  return x.graph.applyOne([x], () => {
    const y = unary("Exp", x);
    return [y, dy => [() => mul(dy, y)]];
  });
}

/** `a` where the condition holds, else `b`. */
export function where(condition: Tensor, a: Tensor, b: Tensor): Tensor {
  const { graph, dtype } = a;
  const shape = broadcastShapes(condition.shape, broadcastShapes(a.shape, b.shape));
  return graph.applyOne([a, b], () => [
    graph.node("Where", [condition, a, b], { shape, dtype }),
    dy => choose(dy, condition),
  ]);
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

function binary(op: string, a: Tensor, b: Tensor, pullback: (dy: Tensor) => (() => Tensor)[]): Tensor {
  const shape = sameShape(a.shape, b.shape) ? a.shape : broadcastShapes(a.shape, b.shape);
  return a.graph.applyOne([a, b], () => [a.graph.node(op, [a, b], { shape, dtype: a.dtype }), pullback]);
}

function unary(op: string, x: Tensor): Tensor {
  return x.graph.node(op, [x], { shape: x.shape, dtype: x.dtype });
}

/** Both branches of a choice: the gradient where it was taken, 0 elsewhere. */
function choose(dy: Tensor, first: Tensor): (() => Tensor)[] {
  const zero = dy.graph.scalar(0);
  return [() => where(first, dy, zero), () => where(first, zero, dy)];
}
