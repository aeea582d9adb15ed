// The horizontal axis of every drawing: one column per iteration, or per few neighbours in a long run. People count
// iterations from 1.
import type { IterationData } from "./read-run.ts";

export interface Column {
  /** Number of its first iteration for people, from 1. */
  readonly first: number;
  readonly last: number;
  readonly members: readonly IterationData[];
}

/** Readers cannot tell more columns apart, and the file would only grow. */
const MOST_COLUMNS = 180;

export function columnsOf(iterations: readonly IterationData[], most = MOST_COLUMNS): Column[] {
  const size = Math.max(1, Math.ceil(iterations.length / most));
  const columns: Column[] = [];
  for (let start = 0; start < iterations.length; start += size) {
    const members = iterations.slice(start, start + size);
    const last = members[members.length - 1];
    columns.push({ first: members[0].iteration + 1, last: last.iteration + 1, members });
  }
  return columns;
}

export function columnLabel({ first, last }: Column): string {
  return first === last ? `iteration ${first}` : `iterations ${first}–${last}`;
}

/** Mean over a column of the iterations that have the number. */
export function columnMean(
  { members }: Column,
  pick: (data: IterationData) => number | undefined,
): number | undefined {
  const values = members.map(pick).filter(value => value !== undefined);
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}
