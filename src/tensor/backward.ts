// Reverse-mode differentiation: one table of rules and one walk over the tape. A rule says, for each input, how its
// gradient follows from the gradients of the outputs; what was broadcast is summed here, not in the rules.
import { InvariantError } from "../failure/errors.ts";
import { add, compare, div, exp, mul, neg, sub, where } from "./elementwise.ts";
import { productDim, type Shape, sameShape, type TapeEntry, type Tensor } from "./graph.ts";
import { combine, gatherRows, scatterAddRows } from "./indexing.ts";
import { matmul } from "./linear.ts";
import { rotate } from "./network.ts";
import type { Primitive } from "./primitives.ts";
import { reduceMean, reduceSum } from "./reductions.ts";
import { concat, expand, reshape, split, transpose, zeros } from "./shaping.ts";

/** Gradient of each input, made only for inputs that need one. */
type Rule<P extends Primitive> = (
  dy: Tensor,
  entry: TapeEntry<P>,
  all: readonly (Tensor | undefined)[],
) => readonly (() => Tensor)[];

const RULES: { readonly [P in Primitive]: Rule<P> } = {
  add: dy => [() => dy, () => dy],
  sub: dy => [() => dy, () => neg(dy)],
  mul: (dy, { inputs: [a, b] }) => [() => mul(dy, b), () => mul(dy, a)],
  // d(a/b) = da/b − (a/b)·db/b
  div: (dy, { inputs: [, b], outputs: [y] }) => [() => div(dy, b), () => neg(mul(div(dy, b), y))],
  max: (dy, { inputs: [a, b] }) => choose(dy, compare("GreaterOrEqual", a, b)),
  min: (dy, { inputs: [a, b] }) => choose(dy, compare("LessOrEqual", a, b)),
  where: (dy, { settings }) => choose(dy, settings.condition),
  neg: dy => [() => neg(dy)],
  exp: (dy, { outputs: [y] }) => [() => mul(dy, y)],
  reduceSum: (dy, { inputs: [x] }) => [() => expand(dy, x.shape)],
  reduceMean: (dy, { inputs: [x], settings }) => [
    () => expand(mul(dy, x.graph.scalar(1 / settings.count)), x.shape),
  ],
  expand: dy => [() => dy],
  reshape: (dy, { inputs: [x] }) => [() => reshape(dy, x.shape)],
  transpose: (dy, { settings: { permutation } }) => [
    () =>
      transpose(
        dy,
        permutation.map((_, axis) => permutation.indexOf(axis)),
      ),
  ],
  concat: (dy, { settings: { axis, sizes, sizesTensor } }) => {
    const pieces = split(dy, axis, sizes, sizesTensor);
    return pieces.map(piece => () => piece);
  },
  split: (_, { inputs: [x], outputs, settings: { axis, sizesTensor } }, all) => [
    () => {
      const parts = outputs.map((output, index) => all[index] ?? zeros(output, output.shape));
      return concat(parts, axis, sizesTensor && { sizesTensor, total: x.shape[axis] });
    },
  ],
  // y = α·op(a)·op(b):  d op(a) = α·dy·op(b)ᵀ,  d op(b) = α·op(a)ᵀ·dy
  matmul: (dy, { inputs: [a, b], settings: { transposeA, transposeB, alpha } }) => [
    () =>
      transposeA
        ? matmul(b, dy, { transposeA: transposeB, transposeB: true, alpha })
        : matmul(dy, b, { transposeB: !transposeB, alpha }),
    () => {
      // A weight used on [.., rows, in] gets its gradient from one flat product instead of a batch of small ones.
      const [flatA, flatDy] =
        b.shape.length === 2 && !transposeA ? [flattenRows(a), flattenRows(dy)] : [a, dy];
      return transposeB
        ? matmul(flatDy, flatA, { transposeA: true, transposeB: transposeA, alpha })
        : matmul(flatA, flatDy, { transposeA: !transposeA, alpha });
    },
  ],
  embed: (dy, { inputs: [table], settings: { ids } }) => [
    () => scatterAddRows(zeros(table, table.shape), ids, dy),
  ],
  takeRows: (dy, { settings: { inverse } }) => [
    () => {
      const width = dy.shape.slice(1);
      const padded = dy.graph.node("Concat", [dy, zeros(dy, [1, ...width])], {
        shape: [`${dy.shape[0]}+1`, ...width],
        attributes: { axis: 0 },
      });
      return gatherRows(padded, inverse);
    },
  ],
  permuteRows: (dy, { settings: { inverse } }) => [() => gatherRows(dy, inverse)],
  dispatch: (dy, { settings: { source, position } }) => [() => combine(dy, source, position)],
  combine: (dy, { settings: { source } }) => [() => gatherRows(dy, source)],
  pickLast: (dy, { inputs: [x], settings: { index } }) => [
    () =>
      x.graph.node("ScatterElements", [zeros(x, x.shape), index, dy], {
        shape: x.shape,
        attributes: { axis: x.shape.length - 1, reduction: "add" },
      }),
  ],
  // y = softmax(x): dx = y·(dy − Σ dy·y)
  softmax: (dy, { outputs: [y] }) => [
    () => {
      const weighted = mul(dy, y);
      return sub(weighted, mul(y, reduceSum(weighted, [-1])));
    },
  ],
  // y = log softmax(x): dx = dy − exp(y)·Σ dy
  logSoftmax: (dy, { outputs: [y] }) => [() => sub(dy, mul(exp(y), reduceSum(dy, [-1])))],
  // silu' = σ + silu·(1 − σ)
  swiglu: (dy, { inputs: [, up], saved: [sigmoid, silu] }) => [
    () => {
      const slope = add(sigmoid, mul(silu, sub(dy.graph.scalar(1), sigmoid)));
      return mul(mul(dy, up), slope);
    },
    () => mul(dy, silu),
  ],
  // x̂ = x/rms: dx = (w·dy − x̂·mean(w·dy·x̂))/rms, dw = Σ dy·x̂
  rmsNorm: (dy, { inputs: [x, weight], saved: [inverseRms] }) => {
    const normed = mul(x, inverseRms);
    return [
      () => {
        const scaled = mul(dy, weight);
        return mul(inverseRms, sub(scaled, mul(normed, reduceMean(mul(scaled, normed), [-1]))));
      },
      () => mul(dy, normed),
    ];
  },
  rope: (dy, { settings: { positions, cos, negativeSin } }) => [
    () => rotate(dy, positions, cos, negativeSin),
  ],
};

/**
 * Adds the reverse pass of a scalar to its graph.
 *
 * @param loss shape [] or [1, ..]: one element
 * @param parameters tensors made by `graph.parameter`
 * @returns d loss / d parameter for each parameter, of its shape; zeros where the loss does not depend on it
 */
export function gradients(loss: Tensor, parameters: readonly Tensor[]): Tensor[] {
  if (loss.shape.some(dim => dim !== 1))
    throw new InvariantError("a loss has one element", { shape: loss.shape });
  const { graph } = loss;
  return graph.withoutTape(() => {
    const found = new Map<string, Tensor>();
    found.set(
      loss.name,
      graph.constant(
        Float32Array.of(1),
        loss.shape.map(() => 1),
      ),
    );
    for (const entry of graph.tape.toReversed()) {
      const all = entry.outputs.map(output => found.get(output.name));
      const dy = all.find(gradient => gradient !== undefined);
      if (dy === undefined) continue;
      ruleOf(entry)(dy, entry, all).forEach((gradient, index) => {
        const input = entry.inputs[index];
        if (!input.differentiable) return;
        const summed = sumTo(gradient(), input.shape);
        const earlier = found.get(input.name);
        found.set(input.name, earlier === undefined ? summed : add(earlier, summed));
      });
    }
    return parameters.map(parameter => found.get(parameter.name) ?? zeros(parameter, parameter.shape));
  });
}

function ruleOf<P extends Primitive>(entry: TapeEntry<P>): Rule<P> {
  return RULES[entry.primitive];
}

/** Both branches of a choice: the gradient where it was taken, 0 elsewhere. */
function choose(dy: Tensor, first: Tensor): (() => Tensor)[] {
  const zero = dy.graph.scalar(0);
  return [() => where(first, dy, zero), () => where(first, zero, dy)];
}

/** Sums a gradient down to the shape that was broadcast. */
function sumTo(gradient: Tensor, shape: Shape): Tensor {
  if (sameShape(gradient.shape, shape)) return gradient;
  const extra = gradient.shape.length - shape.length;
  const axes = gradient.shape.flatMap((dim, axis) =>
    axis < extra || (shape[axis - extra] === 1 && dim !== 1) ? [axis] : [],
  );
  return reshape(axes.length === 0 ? gradient : reduceSum(gradient, axes), shape);
}

function flattenRows(x: Tensor): Tensor {
  if (x.shape.length === 2) return x;
  return reshape(x, [productDim(x.shape.slice(0, -1)), x.shape[x.shape.length - 1]]);
}
