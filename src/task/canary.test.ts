import { describe, expect, it } from "vitest";
import { stripCanary } from "./canary.ts";

// Results of harbor.models.task.task.strip_canary, Harbor 0.26.0.
const ROWS: readonly (readonly [instruction: string, shown: string])[] = [
  ["", ""],
  ["text  \n", "text  \n"],
  ["<!-- harbor-canary GUID 1 -->\n\n \t\ntext\n", "text\n"],
  ["# BENCHMARK CANARY\r\n#canary 2\r\ntext\r\n", "text\r\n"],
  ["  # canary  \n  text", "  text"],
  ["\n\n  text", "  text"],
  ["# Title\n# canary\n", "# Title\n# canary\n"],
  ["<!-- canary\ntext", "<!-- canary\ntext"],
  ["\ufeff# canary\ntext", "\ufeff# canary\ntext"],
  ["text\n# canary", "text\n# canary"],
  ["# canary", ""],
];

describe("stripCanary", () => {
  it.each(ROWS)("of %j leaves %j", (instruction, shown) => {
    expect(stripCanary(instruction)).toBe(shown);
  });
});
