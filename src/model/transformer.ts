// A decoder-only transformer as graph code, shared by training and decoding: they differ in how attention sees earlier
// tokens and in how experts are run, and hand that in. What a layer is, its architecture says.
import type { Graph, Tensor } from "../tensor/graph.ts";
import { embed } from "../tensor/indexing.ts";
import { matmul } from "../tensor/linear.ts";
import { type RopeTables, rmsNorm } from "../tensor/network.ts";
import { ARCHITECTURES } from "./architectures/table.ts";
import type { BlockParts, LayerRouting } from "./blocks.ts";
import type { ModelConfig } from "./config.ts";

export interface TransformerOutput {
  /** [N, D] */
  readonly hidden: Tensor;
  /** One for each layer with experts; none for a dense model. */
  readonly routing: readonly LayerRouting[];
}

/**
 * @param ids i32 [N] with N = B·T, row-major
 * @returns the output of the last norm, and the routing
 */
export function transformer(graph: Graph, ids: Tensor, parts: Omit<BlockParts, "tables">): TransformerOutput {
  const { config, weight } = parts;
  const embedded = embed(weight("model.embed_tokens.weight"), ids);
  const tables = ropeTables(graph, config);
  const { hidden, routing } = ARCHITECTURES[config.architecture].layers(embedded, { ...parts, tables });
  return { hidden: rmsNorm(hidden, weight("model.norm.weight"), config.rmsNormEpsilon), routing };
}

/** Logits over the vocabulary, [M, V]; a tied model uses its embedding. */
export function languageHead(
  hidden: Tensor,
  { config, weight }: Pick<BlockParts, "config" | "weight">,
): Tensor {
  const name = config.tiedEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight";
  return matmul(hidden, weight(name), { transposeB: true });
}

/** cos and sin of position · theta^(−2i/headDim), computed in double precision. */
function ropeTables(graph: Graph, { headDim, maxPositions, ropeTheta }: ModelConfig): RopeTables {
  const half = headDim / 2;
  const table = (value: (angle: number) => number): Tensor => {
    const data = new Float32Array(maxPositions * half);
    for (let i = 0; i < data.length; i++) {
      const position = Math.floor(i / half);
      data[i] = value(position * ropeTheta ** ((-2 * (i % half)) / headDim));
    }
    return graph.constant(data, [maxPositions, half]);
  };
  return { cos: table(Math.cos), sin: table(Math.sin), negativeSin: table(angle => -Math.sin(angle)) };
}
