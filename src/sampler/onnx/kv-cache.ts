// Cached keys and values. A sequence that waits between turns is parked in an array of its own; sequences that are
// being decoded lie side by side in batch arrays, as the decode graph reads them. A `BatchCache` that threw may be half
// written: throw it away.
import type { ModelConfig } from "../../model/config.ts";
import type { Feeds } from "../../tensor/session.ts";

/** Cache rows of one sequence: per layer keys and values, each [Hkv, rows, headDim]. */
export interface ParkedCache {
  readonly rowCount: number;
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
}

export const EMPTY_CACHE: ParkedCache = { rowCount: 0, keys: [], values: [] };

export function cacheBytes(cache: ParkedCache): number {
  return [...cache.keys, ...cache.values].reduce((sum, array) => sum + array.byteLength, 0);
}

/** Room grows in steps of this many rows. */
const ROW_STEP = 64;

/** Batch arrays [B, Hkv, S, headDim] per layer, of which the first `count` sequences are in use. */
export class BatchCache {
  readonly #config: ModelConfig;
  #keys: Float32Array[];
  #values: Float32Array[];
  readonly rowCounts: number[] = [];
  #capacity = 0;
  #rows = ROW_STEP;

  constructor(config: ModelConfig) {
    this.#config = config;
    this.#keys = Array.from({ length: config.layerCount }, () => new Float32Array(0));
    this.#values = this.#keys.map(() => new Float32Array(0));
  }

  get count(): number {
    return this.rowCounts.length;
  }

  /** Adds a sequence at the end. */
  push(parked: ParkedCache): void {
    this.reserve(this.count + 1, parked.rowCount);
    const slot = this.count;
    this.rowCounts.push(parked.rowCount);
    if (parked.rowCount === 0) return;
    this.#eachLayer((array, layer, kind) => {
      const source = kind === "keys" ? parked.keys[layer] : parked.values[layer];
      this.#copyRows(array, slot, this.#rows, source, 0, parked.rowCount, parked.rowCount);
    });
  }

  /** Takes a sequence out; the last one moves into its place. */
  remove(slot: number): ParkedCache {
    const { keyValueHeadCount, headDim } = this.#config;
    const rowCount = this.rowCounts[slot];
    const parked = { rowCount, keys: [] as Float32Array[], values: [] as Float32Array[] };
    const last = this.count - 1;
    this.#eachLayer((array, layer, kind) => {
      const copy = new Float32Array(keyValueHeadCount * rowCount * headDim);
      this.#copyRows(copy, 0, rowCount, array, slot, this.#rows, rowCount);
      parked[kind][layer] = copy;
      if (slot !== last)
        this.#copyRows(array, slot, this.#rows, array, last, this.#rows, this.rowCounts[last]);
    });
    this.rowCounts[slot] = this.rowCounts[last];
    this.rowCounts.pop();
    return parked;
  }

  /** Appends `added` new rows of a sequence from graph outputs [B, Hkv, T, headDim]. */
  append(
    slot: number,
    added: number,
    layer: number,
    kind: "keys" | "values",
    fresh: Float32Array,
    freshRows: number,
  ): void {
    const array = kind === "keys" ? this.#keys[layer] : this.#values[layer];
    const { keyValueHeadCount, headDim } = this.#config;
    for (let head = 0; head < keyValueHeadCount; head++) {
      const from = (slot * keyValueHeadCount + head) * freshRows * headDim;
      const to = ((slot * keyValueHeadCount + head) * this.#rows + this.rowCounts[slot]) * headDim;
      array.set(fresh.subarray(from, from + added * headDim), to);
    }
  }

  /** Makes room for sequences and rows; keeps what is there. */
  reserve(sequences: number, rows: number): void {
    const capacity = sequences <= this.#capacity ? this.#capacity : Math.max(sequences, this.#capacity * 2);
    const length = rows <= this.#rows ? this.#rows : Math.ceil(rows / ROW_STEP) * ROW_STEP;
    if (capacity === this.#capacity && length === this.#rows) return;
    const { keyValueHeadCount, headDim } = this.#config;
    const grow = (old: Float32Array): Float32Array => {
      const grown = new Float32Array(capacity * keyValueHeadCount * length * headDim);
      this.rowCounts.forEach((count, slot) => {
        this.#copyRows(grown, slot, length, old, slot, this.#rows, count);
      });
      return grown;
    };
    this.#keys = this.#keys.map(grow);
    this.#values = this.#values.map(grow);
    this.#capacity = capacity;
    this.#rows = length;
  }

  /** The arrays as feeds `keys.<l>` and `values.<l>`, without copying. */
  feeds(): Feeds {
    const { keyValueHeadCount, headDim, layerCount } = this.#config;
    const shape = [this.count, keyValueHeadCount, this.#rows, headDim];
    const size = shape.reduce((product, dim) => product * dim, 1);
    const feeds: Record<string, Feeds[string]> = {};
    for (let layer = 0; layer < layerCount; layer++) {
      feeds[`keys.${layer}`] = { data: this.#keys[layer].subarray(0, size), shape };
      feeds[`values.${layer}`] = { data: this.#values[layer].subarray(0, size), shape };
    }
    return feeds;
  }

  #eachLayer(visit: (array: Float32Array, layer: number, kind: "keys" | "values") => void): void {
    this.#keys.forEach((array, layer) => {
      visit(array, layer, "keys");
    });
    this.#values.forEach((array, layer) => {
      visit(array, layer, "values");
    });
  }

  /** Copies the first `count` rows of one slot, head by head, between arrays with different room per head. */
  #copyRows(
    to: Float32Array,
    toSlot: number,
    toRows: number,
    from: Float32Array,
    fromSlot: number,
    fromRows: number,
    count: number,
  ): void {
    const { keyValueHeadCount, headDim } = this.#config;
    for (let head = 0; head < keyValueHeadCount; head++) {
      const source = (fromSlot * keyValueHeadCount + head) * fromRows * headDim;
      const target = (toSlot * keyValueHeadCount + head) * toRows * headDim;
      to.set(from.subarray(source, source + count * headDim), target);
    }
  }
}
