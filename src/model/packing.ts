// Packs sequences of different lengths into few rows of one length, as training reads them. Attention stays inside a
// sequence because every position carries the number of its sequence. Each padding position counts as a sequence of its
// own.
import { InvariantError } from "../failure/errors.ts";

export interface PackedRows {
  readonly rowCount: number;
  readonly rowLength: number;
  /** [R·T] token ids; padding is 0. */
  readonly tokens: Int32Array;
  /** [R·T] position of a token in its own sequence. */
  readonly positions: BigInt64Array;
  /** [R·T] number of a token's sequence, from 0; each padding position has a negative number of its own. */
  readonly segments: Int32Array;
  /** Where each sequence starts in the flattened rows, in the order given. */
  readonly starts: readonly number[];
}

/**
 * Packs sequences first-fit, longest first. Rows are as long as the longest sequence, rounded up to 16: attention costs
 * the square of it, so callers group sequences of like length.
 */
export function packSequences(sequences: readonly Int32Array[]): PackedRows {
  if (sequences.length === 0) throw new InvariantError("nothing to pack");
  const longest = sequences.reduce((length, sequence) => Math.max(length, sequence.length), 1);
  const rowLength = Math.ceil(longest / 16) * 16;
  const order = sequences
    .map((_, index) => index)
    .sort((a, b) => sequences[b].length - sequences[a].length || a - b);
  const used: number[] = [];
  const starts = new Array<number>(sequences.length);
  for (const index of order) {
    const { length } = sequences[index];
    const fitting = used.findIndex(filled => filled + length <= rowLength);
    const row = fitting === -1 ? used.push(0) - 1 : fitting;
    starts[index] = row * rowLength + used[row];
    used[row] += length;
  }
  const size = used.length * rowLength;
  const tokens = new Int32Array(size);
  const positions = new BigInt64Array(size);
  const segments = Int32Array.from({ length: size }, (_, place) => -1 - place);
  sequences.forEach((sequence, index) => {
    tokens.set(sequence, starts[index]);
    for (let t = 0; t < sequence.length; t++) {
      positions[starts[index] + t] = BigInt(t);
      segments[starts[index] + t] = index;
    }
  });
  return { rowCount: used.length, rowLength, tokens, positions, segments, starts };
}
