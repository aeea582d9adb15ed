// Layers with a gradient of their own: cheaper, and closer to the exact value, than the chain of their parts.
import { add, mul, sub } from "./elementwise.ts";
import type { Tensor } from "./graph.ts";
import { reduceMean } from "./reductions.ts";

/** silu(gate) · up, element-wise. */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  const graph = gate.graph;
  const { shape } = gate;
  return graph.applyOne([gate, up], () => {
    const sigmoid = graph.node("Sigmoid", [gate], { shape });
    const silu = graph.node("Mul", [gate, sigmoid], { shape });
    // silu' = σ + silu·(1 − σ)
    const gradientOfGate = (dy: Tensor) => {
      const slope = add(sigmoid, mul(silu, sub(graph.scalar(1), sigmoid)));
      return mul(mul(dy, up), slope);
    };
    return [graph.node("Mul", [silu, up], { shape }), dy => [() => gradientOfGate(dy), () => mul(dy, silu)]];
  });
}

/** weight · x / sqrt(mean(x²) + epsilon) over the last axis (arXiv 1910.07467). */
export function rmsNorm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  const graph = x.graph;
  return graph.applyOne([x, weight], () => {
    const [output, inverseRms] = graph.nodeOutputs(
      "SimplifiedLayerNormalization",
      [x, weight],
      [{ shape: x.shape }, { shape: [...x.shape.slice(0, -1), 1] }],
      { attributes: { axis: -1, epsilon: { float: epsilon }, stash_type: 1 } },
    );
    // x̂ = x/rms: dx = (w·dy − x̂·mean(w·dy·x̂))/rms, dw = Σ dy·x̂
    const rule = (dy: Tensor) => {
      const normed = mul(x, inverseRms);
      const gradientOfX = () => {
        const scaled = mul(dy, weight);
        return mul(inverseRms, sub(scaled, mul(normed, reduceMean(mul(scaled, normed), [-1]))));
      };
      return [gradientOfX, () => mul(dy, normed)];
    };
    return [output, rule];
  });
}

/** Tables of shape [positions, headDim / 2] for `rope`. */
export interface RopeTables {
  readonly cos: Tensor;
  readonly sin: Tensor;
  readonly negativeSin: Tensor;
}

/**
 * Rotary position embedding, halves paired (i, i + headDim/2) as in Hugging Face models (arXiv 2104.09864).
 *
 * @param x [B, H, T, headDim]
 * @param positions i64 [B, T]
 */
export function rope(x: Tensor, positions: Tensor, { cos, sin, negativeSin }: RopeTables): Tensor {
  return x.graph.applyOne([x], () => [
    rotate(x, positions, cos, sin),
    dy => [() => rotate(dy, positions, cos, negativeSin)],
  ]);
}

/** One rotation; the reverse pass turns back by the negative sine. */
function rotate(x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor): Tensor {
  return x.graph.node("RotaryEmbedding", [x, positions, cos, sin], {
    shape: x.shape,
    domain: "com.microsoft",
  });
}
