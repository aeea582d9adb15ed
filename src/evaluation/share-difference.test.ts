import { expect, test } from "vitest";
import { shareDifference } from "./share-difference.ts";

// Table II, method 10, of Newcombe, Statistics in Medicine 17 (1998) 873–890.
test.each([
  ["56/70", "48/80", 0.0524, 0.3339],
  ["9/10", "3/10", 0.1705, 0.809],
  ["6/7", "2/7", 0.0582, 0.8062],
  ["5/56", "0/29", -0.0381, 0.1926],
  ["0/10", "0/20", -0.1611, 0.2775],
  ["0/10", "0/10", -0.2775, 0.2775],
  ["10/10", "0/20", 0.6791, 1],
])("%s minus %s", (after, before, low, high) => {
  const share = (text: string) => {
    const [successes, size] = text.split("/").map(Number);
    return { successes, size };
  };
  const difference = shareDifference(share(before), share(after));
  expect(difference.low).toBeCloseTo(low, 4);
  expect(difference.high).toBeCloseTo(high, 4);
});
