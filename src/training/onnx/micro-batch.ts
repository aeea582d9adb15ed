// Chunks in packed rows, few thousand tokens at a time, with the places of their trainable tokens. Numbers per token go
// in and come out as arrays over the chunk ([N], by token); only here are they gathered into the rows of a graph.
import { type PackedRows, packSequences } from "../../model/packing.ts";
import type { Feeds } from "../../tensor/session.ts";
import type { Chunk } from "../../trajectory/chunk.ts";

export interface MicroBatch {
  /** Which of the caller's chunks, in the order of `packed`. */
  readonly chunkIndices: readonly number[];
  readonly packed: PackedRows;
  /** Chunk index and token of every wanted row. */
  readonly places: readonly { readonly chunk: number; readonly token: number }[];
  /** [M] row that predicts each wanted token: the one before it. */
  readonly rows: Int32Array;
  /** [M] the token itself; 0 past a chunk's end. */
  readonly targets: Int32Array;
}

/** Tokens of one graph run, about; beyond a few thousand nothing gets faster, and memory grows. */
const TOKENS_PER_RUN = 4096;

/** `trainable`: the rows that predict the sampled tokens. `end`: the row of each chunk's last token. */
type Wanted = "trainable" | "end";

/**
 * Cuts chunks into micro-batches of like length and about the same number of tokens. For trainable rows the last token
 * of a chunk is not fed: it predicts nothing. A small rest would not only be slow: ONNX Runtime splits products of few rows among its threads along the
 * other axis and then adds in another order, so that the result would depend on the number of threads.
 */
export function microBatches(chunks: readonly Chunk[], wanted: Wanted = "trainable"): MicroBatch[] {
  if (chunks.length === 0) return [];
  const byLength = chunks
    .map((_, index) => index)
    .sort((a, b) => chunks[b].tokens.length - chunks[a].tokens.length || a - b);
  const total = chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const share = total / Math.ceil(total / TOKENS_PER_RUN);
  const groups = Map.groupBy(withTokensBefore(chunks, byLength), ({ before }) => Math.floor(before / share));
  return [...groups.values()].map(group =>
    toMicroBatch(
      chunks,
      group.map(({ index }) => index),
      wanted,
    ),
  );
}

/** How many tokens stand before each chunk in an order. */
function withTokensBefore(
  chunks: readonly Chunk[],
  order: readonly number[],
): { index: number; before: number }[] {
  let before = 0;
  return order.map(index => {
    const at = before;
    before += chunks[index].tokens.length;
    return { index, before: at };
  });
}

/** [M, 1] of the wanted rows out of arrays by token. */
export function gatherRows(
  batch: MicroBatch,
  byToken: readonly Float32Array[],
): { data: Float32Array; shape: number[] } {
  const data = Float32Array.from(batch.places, ({ chunk, token }) => byToken[chunk][token]);
  return { data, shape: [data.length, 1] };
}

/** Writes [M] or [M, 1] back into arrays by token. */
export function scatterRows(batch: MicroBatch, rows: Float32Array, byToken: readonly Float32Array[]): void {
  batch.places.forEach(({ chunk, token }, row) => {
    byToken[chunk][token] = rows[row];
  });
}

/** [S, M] and [M, S]: the chunks' means over wanted rows, and which chunk each row is of (losses.ts, `ChunkRows`). */
export function chunkFeeds({ chunkIndices, places }: MicroBatch): Feeds {
  const [chunkCount, rowCount] = [chunkIndices.length, places.length];
  const orderOf = new Map(chunkIndices.map((chunk, order) => [chunk, order]));
  const orders = places.map(({ chunk }) => orderOf.get(chunk) ?? 0);
  const sizes = new Float32Array(chunkCount);
  for (const order of orders) sizes[order]++;
  const means = new Float32Array(chunkCount * rowCount);
  const members = new Float32Array(chunkCount * rowCount);
  orders.forEach((order, row) => {
    means[order * rowCount + row] = 1 / sizes[order];
    members[row * chunkCount + order] = 1;
  });
  return {
    "chunk.means": { data: means, shape: [chunkCount, rowCount] },
    "chunk.members": { data: members, shape: [rowCount, chunkCount] },
  };
}

function toMicroBatch(chunks: readonly Chunk[], chunkIndices: readonly number[], wanted: Wanted): MicroBatch {
  const fed = chunkIndices.map(index => chunks[index].tokens.subarray(0, wanted === "end" ? undefined : -1));
  const packed = packSequences(fed);
  const wantedOf = ({ mask }: Chunk): number[] =>
    wanted === "end" ? [mask.length] : [...mask.keys()].filter(token => mask[token] === 1);
  const places = chunkIndices.flatMap(chunk => wantedOf(chunks[chunk]).map(token => ({ chunk, token })));
  const startOf = new Map(chunkIndices.map((chunk, order) => [chunk, packed.starts[order]]));
  return {
    chunkIndices,
    packed,
    places,
    rows: Int32Array.from(places, ({ chunk, token }) => (startOf.get(chunk) ?? 0) + token - 1),
    targets: Int32Array.from(places, ({ chunk, token }) => chunks[chunk].tokens[token] ?? 0),
  };
}
