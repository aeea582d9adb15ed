// Layers with a gradient of their own: cheaper, and closer to the exact value, than the chain of their parts.
import type { Tensor } from "./graph.ts";

/** silu(gate) · up, element-wise. */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  const graph = gate.graph;
  const { shape } = gate;
  return graph.apply("swiglu", [gate, up], undefined, () => {
    const sigmoid = graph.node("Sigmoid", [gate], { shape });
    const silu = graph.node("Mul", [gate, sigmoid], { shape });
    return { outputs: [graph.node("Mul", [silu, up], { shape })], saved: [sigmoid, silu] };
  })[0];
}

/** weight · x / sqrt(mean(x²) + epsilon) over the last axis (arXiv 1910.07467). */
export function rmsNorm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  const graph = x.graph;
  return graph.apply("rmsNorm", [x, weight], undefined, () => {
    const [normed, inverseRms] = graph.nodeOutputs(
      "SimplifiedLayerNormalization",
      [x, weight],
      [{ shape: x.shape }, { shape: [...x.shape.slice(0, -1), 1] }],
      { attributes: { axis: -1, epsilon: { float: epsilon }, stash_type: 1 } },
    );
    return { outputs: [normed], saved: [inverseRms] };
  })[0];
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
  return x.graph.apply("rope", [x], { positions, cos, negativeSin }, () => ({
    outputs: [rotate(x, positions, cos, sin)],
  }))[0];
}

/** One rotation; the reverse pass turns back by the negative sine. */
export function rotate(x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor): Tensor {
  return x.graph.node("RotaryEmbedding", [x, positions, cos, sin], {
    shape: x.shape,
    domain: "com.microsoft",
  });
}
