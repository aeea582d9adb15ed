import { describe, expect, it } from "vitest";
import { columnLabel, columnMean, columnsOf } from "./columns.ts";
import type { IterationData } from "./read-run.ts";

const run = (length: number): IterationData[] =>
  Array.from({ length }, (_, iteration) => ({ iteration, timings: { train: iteration } }));

describe("columns", () => {
  it("are iterations while they can be told apart", () => {
    const columns = columnsOf(run(140));
    expect(columns).toHaveLength(140);
    expect(columnLabel(columns[7])).toBe("iteration 8");
  });

  it("gather neighbours in a long run, lose none, and are never many", () => {
    for (const length of [181, 1000, 12_345]) {
      const columns = columnsOf(run(length));
      expect(columns.length).toBeLessThanOrEqual(180);
      expect(columns.flatMap(({ members }) => members.map(({ iteration }) => iteration))).toEqual(
        Array.from({ length }, (_, iteration) => iteration),
      );
    }
    expect(columnLabel(columnsOf(run(400))[1])).toBe("iterations 4–6");
  });

  it("have the mean of those that have a number", () => {
    const [column] = columnsOf([{ iteration: 0 }, { iteration: 1, timings: { train: 4 } }], 1);
    expect(columnMean(column, ({ timings }) => timings?.train)).toBe(4);
    expect(columnMean(column, () => undefined)).toBeUndefined();
  });
});
