// Routed experts of a token stream: which experts each predicting position used in each MoE layer. A stream of N tokens
// has N − 1 rows: row j was computed at token j and belongs to the prediction of token j + 1. A dense model has no
// routes at all, rather than empty ones.
import { InvariantError } from "../failure/errors.ts";

export interface Routes {
  readonly rowCount: number;
  /** Number of MoE layers (dense layers have no row). */
  readonly layerCount: number;
  readonly expertsPerToken: number;
  /** [rows, L, k] row-major. One byte holds ids of up to 256 experts, two bytes the rest. */
  readonly ids: Uint8Array | Uint16Array;
}

/** Shape of a model's routes. */
export interface RouteLayout {
  readonly layerCount: number;
  readonly expertsPerToken: number;
  readonly expertCount: number;
}

/** Room for `rowCount` rows in the smallest type that holds every expert id. */
export function allocateRoutes(
  rowCount: number,
  { layerCount, expertsPerToken, expertCount }: RouteLayout,
): Routes {
  const size = rowCount * layerCount * expertsPerToken;
  const ids = expertCount <= 256 ? new Uint8Array(size) : new Uint16Array(size);
  return { rowCount, layerCount, expertsPerToken, ids };
}

/** Rows [start, end) as a view. */
export function sliceRoutes(routes: Routes, start: number, end: number): Routes {
  const width = routes.layerCount * routes.expertsPerToken;
  if (start < 0 || end < start || end > routes.rowCount) {
    throw new InvariantError("route rows out of range", { start, end, rowCount: routes.rowCount });
  }
  return { ...routes, rowCount: end - start, ids: routes.ids.subarray(start * width, end * width) };
}

/**
 * Puts pieces that follow each other into one. Every piece must start where the one before it ended: the caller asks
 * for rows from the number it already holds, and never gets a row twice.
 */
export function concatRoutes(pieces: readonly Routes[], layout: RouteLayout): Routes {
  const joined = allocateRoutes(
    pieces.reduce((rows, piece) => rows + piece.rowCount, 0),
    layout,
  );
  let at = 0;
  for (const piece of pieces) {
    if (piece.layerCount !== layout.layerCount || piece.expertsPerToken !== layout.expertsPerToken) {
      throw new InvariantError("routes of another model", {
        piece: [piece.layerCount, piece.expertsPerToken],
        layout,
      });
    }
    joined.ids.set(piece.ids, at);
    at += piece.ids.length;
  }
  return joined;
}

/**
 * Proves what replay relies on: one row per predicting token, ids of existing experts, and k different ones in each
 * row. A sampler that misses a layer reports zeros, which fails for k > 1. For k = 1 zeros are expert 0, which is a
 * legal choice: only the gap between replayed and free log-probs can show a layer that was missed.
 *
 * @throws InvariantError naming the first row, layer and value that is wrong
 */
export function assertRoutes(routes: Routes, tokenCount: number, { expertCount }: RouteLayout): void {
  const { rowCount, layerCount, expertsPerToken: k, ids } = routes;
  if (rowCount !== tokenCount - 1)
    throw new InvariantError("routes need one row per predicting token", { rowCount, tokenCount });
  if (ids.length !== rowCount * layerCount * k)
    throw new InvariantError("routes have another size than their shape", {
      rowCount,
      layerCount,
      k,
      size: ids.length,
    });
  for (let layer = 0; layer < layerCount; layer++) {
    for (let row = 0; row < rowCount; row++) {
      const at = (row * layerCount + layer) * k;
      for (let choice = 0; choice < k; choice++) {
        const id = ids[at + choice];
        if (id >= expertCount)
          throw new InvariantError("routes name an expert that does not exist", {
            row,
            layer,
            id,
            expertCount,
          });
        for (let other = 0; other < choice; other++) {
          if (ids[at + other] === id)
            throw new InvariantError("routes name an expert twice in a row", { row, layer, id });
        }
      }
    }
  }
}
