// Matrix products.
import { InvariantError } from "../failure/errors.ts";
import { broadcastShapes, productDim, type Tensor } from "./graph.ts";
import { reshape } from "./shaping.ts";

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
  const product = () => {
    if (!transposeA && !transposeB && alpha === 1) return graph.node("MatMul", [a, b], { shape });
    const attributes = { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: alpha } };
    return graph.node("FusedMatMul", [a, b], { shape, attributes, domain: "com.microsoft" });
  };
  // d op(a) = α·dy·op(b)ᵀ,  d op(b) = α·op(a)ᵀ·dy
  const gradientOfA = (dy: Tensor) =>
    transposeA
      ? matmul(b, dy, { transposeA: transposeB, transposeB: true, alpha })
      : matmul(dy, b, { transposeB: !transposeB, alpha });
  const gradientOfB = (dy: Tensor) => {
    // A weight used on [.., rows, in] gets its gradient from one flat product instead of a batch of small ones.
    const [flatA, flatDy] = b.shape.length === 2 && !transposeA ? [flattenRows(a), flattenRows(dy)] : [a, dy];
    return transposeB
      ? matmul(flatDy, flatA, { transposeA: true, transposeB: transposeA, alpha })
      : matmul(flatA, flatDy, { transposeA: !transposeA, alpha });
  };
  return graph.applyOne([a, b], () => [product(), dy => [() => gradientOfA(dy), () => gradientOfB(dy)]]);
}

function flattenRows(x: Tensor): Tensor {
  if (x.shape.length === 2) return x;
  return reshape(x, [productDim(x.shape.slice(0, -1)), x.shape[x.shape.length - 1]]);
}

function lastTwo({ shape }: Tensor, transposed: boolean) {
  const [first, second] = shape.slice(-2);
  return transposed ? [second, first] : [first, second];
}
