// Matrix products.
import { InvariantError } from "../failure/errors.ts";
import { broadcastShapes, type Tensor } from "./graph.ts";

export interface MatmulSettings {
  /** Use the transpose of the last two axes of `a` (or `b`). */
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** Factor on the product. */
  readonly alpha?: number;
}

/** alpha · op(a) @ op(b) over the last two axes; leading axes broadcast. Checkpoints hold weights as [out, in]. */
export function matmul(a: Tensor, b: Tensor, settings: MatmulSettings = {}): Tensor {
  const { transposeA = false, transposeB = false, alpha = 1 } = settings;
  const graph = a.graph;
  const [rows, innerA] = lastTwo(a, transposeA);
  const [innerB, columns] = lastTwo(b, transposeB);
  if (innerA !== innerB)
    throw new InvariantError("matmul: inner sizes differ", { a: a.shape, b: b.shape, settings });
  const shape = [...broadcastShapes(a.shape.slice(0, -2), b.shape.slice(0, -2)), rows, columns];
  return graph.apply("matmul", [a, b], { transposeA, transposeB, alpha }, () => {
    if (!transposeA && !transposeB && alpha === 1)
      return { outputs: [graph.node("MatMul", [a, b], { shape })] };
    const attributes = { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: alpha } };
    return { outputs: [graph.node("FusedMatMul", [a, b], { shape, attributes, domain: "com.microsoft" })] };
  })[0];
}

function lastTwo({ shape }: Tensor, transposed: boolean) {
  const [first, second] = shape.slice(-2);
  return transposed ? [second, first] : [first, second];
}
