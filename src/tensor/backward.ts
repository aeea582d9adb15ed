// Reverse-mode differentiation: one walk over the tape. Each operation brought its own rule; gradients of what was
// broadcast are summed here, not in the rules.
import { InvariantError } from "../failure/errors.ts";
import { add } from "./elementwise.ts";
import { type Shape, sameShape, type Tensor } from "./graph.ts";
import { reduceSum } from "./reductions.ts";
import { reshape, zeros } from "./shaping.ts";

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
    for (const { inputs, outputs, pullback } of graph.tape.toReversed()) {
      const all = outputs.map(output => found.get(output.name));
      const dy = all.find(gradient => gradient !== undefined);
      if (dy === undefined) continue;
      pullback(dy, all).forEach((gradient, index) => {
        const input = inputs[index];
        if (!input.differentiable) return;
        const summed = sumTo(gradient(), input.shape);
        const earlier = found.get(input.name);
        found.set(input.name, earlier === undefined ? summed : add(earlier, summed));
      });
    }
    return parameters.map(parameter => found.get(parameter.name) ?? zeros(parameter, parameter.shape));
  });
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
