// Sums and means over axes, softmax.
import { InvariantError } from "../failure/errors.ts";
import { exp, mul, sub } from "./elementwise.ts";
import type { Dim, Tensor } from "./graph.ts";
import { expand } from "./shaping.ts";

/** Sum over axes, which stay as size 1. */
export function reduceSum(x: Tensor, axes: readonly number[]): Tensor {
  const at = axes.map(axis => normalAxis(x, axis));
  return x.graph.applyOne([x], () => [reduce("ReduceSum", x, at), dy => [() => expand(dy, x.shape)]]);
}

/** Mean over axes of known size, which stay as size 1. It has no gradient rule: only rules use it. */
export function reduceMean(x: Tensor, axes: readonly number[]): Tensor {
  const at = axes.map(axis => normalAxis(x, axis));
  for (const axis of at) assertKnown(x.shape[axis]);
  return reduce("ReduceMean", x, at);
}

/** Softmax over the last axis. */
export function softmax(x: Tensor): Tensor {
  return x.graph.applyOne([x], () => {
    const y = overLastAxis("Softmax", x);
    // dx = y·(dy − Σ dy·y)
    const rule = (dy: Tensor) => {
      const weighted = mul(dy, y);
      return sub(weighted, mul(y, reduceSum(weighted, [-1])));
    };
    return [y, dy => [() => rule(dy)]];
  });
}

/** log softmax over the last axis, nats. */
export function logSoftmax(x: Tensor): Tensor {
  return x.graph.applyOne([x], () => {
    const y = overLastAxis("LogSoftmax", x);
    // dx = dy − exp(y)·Σ dy
    return [y, dy => [() => sub(dy, mul(exp(y), reduceSum(dy, [-1])))]];
  });
}

function overLastAxis(op: string, x: Tensor): Tensor {
  return x.graph.node(op, [x], { shape: x.shape, attributes: { axis: -1 } });
}

function reduce(op: "ReduceSum" | "ReduceMean", x: Tensor, axes: readonly number[]): Tensor {
  const shape = x.shape.map((dim, axis) => (axes.includes(axis) ? 1 : dim));
  return x.graph.node(op, [x, x.graph.integers(axes)], {
    shape,
    dtype: x.dtype,
    attributes: { keepdims: 1 },
  });
}

function normalAxis(x: Tensor, axis: number): number {
  return axis < 0 ? axis + x.shape.length : axis;
}

function assertKnown(dim: Dim): void {
  if (typeof dim !== "number") throw new InvariantError("a mean needs axes of known size", { dim });
}
