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
 * Proves what replay relies on: one row per predicting token, the model's layers and experts per token, ids of existing
 * experts, and k different ones in each row. A sampler that misses a layer reports zeros, which fails for k > 1. For k = 1
 * zeros are expert 0, which is a legal choice: only the gap between replayed and free log-probs can show a layer that was
 * missed.
 *
 * @throws InvariantError naming the first row, layer and value that is wrong
 */
export function assertRoutes(routes: Routes, tokenCount: number, layout: RouteLayout): void {
  const { rowCount, layerCount, expertsPerToken: k, ids } = routes;
  const { expertCount } = layout;
  if (rowCount !== tokenCount - 1)
    throw new InvariantError("routes need one row per predicting token", { rowCount, tokenCount });
  if (layerCount !== layout.layerCount || k !== layout.expertsPerToken)
    throw new InvariantError("routes of another model", { routes: [layerCount, k], layout });
  if (ids.length !== rowCount * layerCount * k)
    throw new InvariantError("routes have another size than their shape", {
      rowCount,
      layerCount,
      k,
      size: ids.length,
    });
  if (k === 8 && ids instanceof Uint8Array && areEightDistinct(ids, expertCount)) return;
  for (let at = 0; at < ids.length; at += k) {
    for (let choice = 0; choice < k; choice++) {
      const id = ids[at + choice];
      const place = { row: Math.floor(at / k / layerCount), layer: (at / k) % layerCount, id };
      if (id >= expertCount)
        throw new InvariantError("routes name an expert that does not exist", { ...place, expertCount });
      for (let other = 0; other < choice; other++) {
        if (ids[at + other] === id) throw new InvariantError("routes name an expert twice in a row", place);
      }
    }
  }
}

const ONES = 0x01010101;
const HIGH_BITS = 0x80808080;

/**
 * The same check, four ids at a time, for the k of the models that are trained (Qwen3-MoE): 32 million ids of a long
 * episode take 30 ms instead of 500. Every id of a row meets every other as one word is turned against the other; a byte
 * of their difference that is zero shows as a high bit (Hacker's Delight, 6-1).
 *
 * @param ids [rows, 8]
 * @returns false where one id at a time has to find out, as for experts whose number is no power of two
 */
function areEightDistinct(ids: Uint8Array, expertCount: number): boolean {
  const aligned = ids.byteOffset % 4 === 0 ? ids : ids.slice();
  const words = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.length / 4);
  let equal = 0;
  let bits = 0;
  for (let at = 0; at < words.length; at += 2) {
    const a = words[at] | 0;
    const b = words[at + 1] | 0;
    const a1 = (a << 8) | (a >>> 24);
    const a2 = (a << 16) | (a >>> 16);
    const a3 = (a << 24) | (a >>> 8);
    const b1 = (b << 8) | (b >>> 24);
    const b2 = (b << 16) | (b >>> 16);
    const within = zeroByte(a ^ a1) | zeroByte(a ^ a2) | zeroByte(b ^ b1) | zeroByte(b ^ b2);
    equal |= within | zeroByte(a ^ b) | zeroByte(a1 ^ b) | zeroByte(a2 ^ b) | zeroByte(a3 ^ b);
    bits |= a | b;
  }
  const highest = Math.max(...[0, 8, 16, 24].map(shift => (bits >>> shift) & 0xff));
  return (equal & HIGH_BITS) === 0 && highest < expertCount;
}

/** The high bit of some byte is set where a byte is zero, and no high bit is set where none is. */
function zeroByte(word: number): number {
  return (word - ONES) & ~word;
}
