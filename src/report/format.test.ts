import { describe, expect, it } from "vitest";
import {
  count,
  decimals,
  duration,
  moment,
  percent,
  plural,
  points,
  roundCount,
  scientific,
  signed,
  significant,
} from "./format.ts";

describe("numbers", () => {
  it.each([
    [percent(0.4124), "41.2 %"],
    [percent(-0.00001), "0.0 %"],
    [points(0.123), "+12.3"],
    [points(-0.05), "−5.0"],
    [signed(-0.0004, 3), "0.000"],
    [decimals(-1.25, 1), "−1.3"],
    [significant(0.012345), "0.0123"],
    [significant(0.000412), "4.1×10⁻⁴"],
    [significant(0), "0"],
    [significant(123.4), "123"],
    [scientific(1e-8, 0), "10⁻⁸"],
    [scientific(2.5e12, 1), "2.5×10¹²"],
    [count(12817), "12,817"],
    [roundCount(1_412_345), "1.4 M"],
    [roundCount(726_000), "726 k"],
    [roundCount(812), "812"],
    [duration(85), "85 ms"],
    [duration(3400), "3.4 s"],
    [duration(725_000), "12 min 5 s"],
    [duration(7_440_000), "2 h 4 min"],
    [moment("2026-11-30T01:09:37.655Z"), "2026-11-30 01:09 UTC"],
    [plural(1, "turn"), "1 turn"],
    [plural(1200, "turn"), "1,200 turns"],
  ])("%s is %s", (got, expected) => {
    expect(got).toBe(expected);
  });
});
