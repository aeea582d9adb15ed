// Operations that only move or stretch elements.
import { InvariantError } from "../failure/errors.ts";
import { type Dim, type Shape, sameShape, type Tensor } from "./graph.ts";

/** The same elements in another shape; at most the product of the named dimensions may change its spelling. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const graph = x.graph;
  const names = shape.filter(dim => typeof dim === "string");
  // With one unknown size ONNX infers it (-1), which saves reading it from the graph.
  const target =
    names.length === 1
      ? graph.integers(shape.map(dim => (typeof dim === "string" ? -1 : dim)))
      : graph.shapeTensor(shape);
  return graph.applyOne([x], () => [
    graph.node("Reshape", [x, target], { shape, dtype: x.dtype }),
    dy => [() => reshape(dy, x.shape)],
  ]);
}

export function transpose(x: Tensor, permutation: readonly number[]): Tensor {
  const graph = x.graph;
  const shape = permutation.map(axis => x.shape[axis]);
  const inverse = permutation.map((_, axis) => permutation.indexOf(axis));
  return graph.applyOne([x], () => [
    graph.node("Transpose", [x], { shape, dtype: x.dtype, attributes: { perm: permutation } }),
    dy => [() => transpose(dy, inverse)],
  ]);
}

/** Stretches sizes of 1 (and missing leading axes) to `shape`. It has no gradient rule: only rules use it. */
export function expand(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  return x.graph.node("Expand", [x, x.graph.shapeTensor(shape)], { shape, dtype: x.dtype });
}

/** Lays tensors end to end along an axis. */
export function concat(parts: readonly Tensor[], axis: number, named?: NamedSizes): Tensor {
  const first = parts[0];
  const graph = first.graph;
  const sizes = parts.map(part => part.shape[axis]);
  const total = named?.total ?? sizes.reduce<number>((sum, size) => sum + fixed(size), 0);
  const shape = first.shape.map((dim, at) => (at === axis ? total : dim));
  return graph.applyOne(parts, () => [
    graph.node("Concat", parts, { shape, dtype: first.dtype, attributes: { axis } }),
    dy => split(dy, axis, sizes, named?.sizesTensor).map(piece => () => piece),
  ]);
}

/** How pieces whose sizes are known only when the graph runs are laid together. */
interface NamedSizes {
  /** i64 [pieces] */
  readonly sizesTensor: Tensor;
  readonly total: Dim;
}

/** Cuts a tensor along an axis into pieces of the given sizes. Named sizes are read from `sizesTensor` (i64). */
export function split(x: Tensor, axis: number, sizes: readonly Dim[], sizesTensor?: Tensor): Tensor[] {
  const graph = x.graph;
  const lengths = sizesTensor ?? graph.integers(sizes.map(fixed));
  const shapes = sizes.map(size => ({
    shape: x.shape.map((dim, at) => (at === axis ? size : dim)),
    dtype: x.dtype,
  }));
  return graph.apply([x], () => {
    const outputs = graph.nodeOutputs("Split", [x, lengths], shapes, { attributes: { axis } });
    for (const output of outputs) graph.bindDims(output);
    const join = (all: readonly (Tensor | undefined)[]) => {
      const parts = outputs.map((output, index) => all[index] ?? zeros(output, output.shape));
      return concat(parts, axis, sizesTensor && { sizesTensor, total: x.shape[axis] });
    };
    return { outputs, pullback: (_, all) => [() => join(all)] };
  });
}

/** Zeros of a shape, f32. */
export function zeros(like: Tensor, shape: Shape): Tensor {
  const graph = like.graph;
  return graph.withoutTape(() => graph.node("ConstantOfShape", [graph.shapeTensor(shape)], { shape }));
}

function fixed(size: Dim): number {
  if (typeof size !== "number")
    throw new InvariantError("this size has to be known when the graph is built", { size });
  return size;
}
