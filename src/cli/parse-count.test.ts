import { expect, test } from "vitest";
import { parseCount, parseNumber, parsePositiveCount } from "./parse-count.ts";

test.each(["", " ", "-1", "1.5", "1e3", "0x10", "three", "9007199254740993"])("%j is no count", text => {
  expect(() => parseCount(text)).toThrow("Expected a whole number from 0");
});

test("nothing is a version, and not how many tasks to check", () => {
  expect(parseCount("0")).toBe(0);
  expect(() => parsePositiveCount("0")).toThrow("Expected a whole number from 1");
  expect(parsePositiveCount("12")).toBe(12);
});

test("what the store numbers has at most six digits", () => {
  expect(parseNumber("999999")).toBe(999_999);
  expect(() => parsePositiveCount("1000000")).toThrow("Expected a whole number from 1 to 999999");
  expect(() => parseNumber("1000000")).toThrow("Expected a whole number from 0 to 999999");
});
