// Which prompts are computed together, and how much of each: attention makes scores of every new token over every
// token before it, so a long prompt is fed in pieces whose scores fit a fixed room.
import type { ModelConfig } from "../../model/config.ts";
import type { Sequence } from "./sequence.ts";

export interface PrefillRoom extends Pick<ModelConfig, "headCount"> {
  /** Room for the float32 attention scores of one layer. The graph holds about four copies of them at once. */
  readonly scoreBytes: number;
}

export const DEFAULT_SCORE_BYTES = 64 * 2 ** 20;
/** Room for the hidden states: new tokens of one pass, padding included. */
const PASS_TOKENS = 4096;
/** Prompts that are computed together may differ this much in new tokens, since all are padded to the longest. */
const PADDING = 1.5;
const PADDING_TOKENS = 16;

type Waiting = Pick<Sequence, "freshCount" | "cache">;

/**
 * The number of tokens of the next piece: the largest T for which H · T · (S + T) scores over S cached rows fit the
 * room. It depends on the sequence alone, so that no answer depends on who else is in the batch.
 */
export function pieceOf(
  { freshCount, cache: { rowCount: S } }: Waiting,
  { headCount, scoreBytes }: PrefillRoom,
): number {
  const scores = scoreBytes / 4 / headCount;
  const fitting = Math.floor((Math.sqrt(S * S + 4 * scores) - S) / 2);
  return Math.min(freshCount, PASS_TOKENS, Math.max(1, fitting));
}

/** The oldest prompt, and others with a piece of like length as long as all together fit the rooms. */
export function choosePrefill<S extends Waiting>(waiting: readonly S[], room: PrefillRoom): readonly S[] {
  const group: S[] = [];
  let [shortest, longest, rows] = [Number.POSITIVE_INFINITY, 0, 0];
  for (const sequence of waiting) {
    const piece = pieceOf(sequence, room);
    const next = {
      shortest: Math.min(shortest, piece),
      longest: Math.max(longest, piece),
      rows: Math.max(rows, sequence.cache.rowCount),
    };
    const count = group.length + 1;
    const isLike = next.longest <= Math.max(next.shortest * PADDING, next.shortest + PADDING_TOKENS);
    const scores = count * room.headCount * next.longest * (next.rows + next.longest);
    const fits = count * next.longest <= PASS_TOKENS && scores * 4 <= room.scoreBytes;
    if (group.length > 0 && !(isLike && fits)) continue;
    group.push(sequence);
    ({ shortest, longest, rows } = next);
  }
  return group;
}
