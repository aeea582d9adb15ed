// The horizontal axis of every curve: one column per iteration, or per few neighbours in a long run.
import type { IterationData } from "./read-run.ts";

export interface Column {
  readonly first: number;
  readonly last: number;
  readonly members: readonly IterationData[];
}

/** More columns than this cannot be told apart in a curve, and would only make the file larger. */
const MOST_COLUMNS = 180;

export function columnsOf(iterations: readonly IterationData[], most = MOST_COLUMNS): Column[] {
  const size = Math.max(1, Math.ceil(iterations.length / most));
  const columns: Column[] = [];
  for (let start = 0; start < iterations.length; start += size) {
    const members = iterations.slice(start, start + size);
    columns.push({ first: members[0].iteration, last: members[members.length - 1].iteration, members });
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
