// Sums and means over axes, softmax.
import { InvariantError } from "../failure/errors.ts";
import type { Dim, Tensor } from "./graph.ts";

/** Sum over axes, which stay as size 1. */
export function reduceSum(x: Tensor, axes: readonly number[]): Tensor {
  const at = axes.map(axis => normalAxis(x, axis));
  return x.graph.apply("reduceSum", [x], { axes: at }, () => ({ outputs: [reduce("ReduceSum", x, at)] }))[0];
}

/** Mean over axes of known size, which stay as size 1. */
export function reduceMean(x: Tensor, axes: readonly number[]): Tensor {
  const at = axes.map(axis => normalAxis(x, axis));
  const count = at.reduce((product, axis) => product * knownSize(x.shape[axis]), 1);
  return x.graph.apply("reduceMean", [x], { axes: at, count }, () => ({
    outputs: [reduce("ReduceMean", x, at)],
  }))[0];
}

/** Softmax over the last axis. */
export function softmax(x: Tensor): Tensor {
  return overLastAxis("softmax", "Softmax", x);
}

/** log softmax over the last axis, nats. */
export function logSoftmax(x: Tensor): Tensor {
  return overLastAxis("logSoftmax", "LogSoftmax", x);
}

function overLastAxis(primitive: "softmax" | "logSoftmax", op: string, x: Tensor): Tensor {
  return x.graph.apply(primitive, [x], undefined, () => ({
    outputs: [x.graph.node(op, [x], { shape: x.shape, attributes: { axis: -1 } })],
  }))[0];
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

function knownSize(dim: Dim): number {
  if (typeof dim !== "number") throw new InvariantError("a mean needs axes of known size", { dim });
  return dim;
}
