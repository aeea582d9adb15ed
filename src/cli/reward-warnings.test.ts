import { expect, test } from "vitest";
import { describeRewards } from "./reward-warnings.ts";

test.each([
  ["a scale that no task comes near", [2, 2], 20, /2 assertions, so solving one earns 0\.10; /],
  ["tasks of very different size", [2, 20], 20, /2 to 20 assertions, so solving one earns 0\.10 to 1\.00/],
  ["a scale far below the counts", [60, 60], 20, /60 assertions, so solving one earns 3\.00; /],
  ["tests that report nothing", [5, 0, 6], 5, /the tests of 1 of 3 tasks report no assertions/],
])("%s is worth a word", (_, assertions, scale, message) => {
  expect(describeRewards(assertions, scale)).toEqual([expect.stringMatching(message)]);
});

test("a scale that fits the tasks, and a pool of which nothing is known, are not", () => {
  expect(describeRewards([4, 6, 7], 7)).toEqual([]);
  expect(describeRewards([], 20)).toEqual([]);
});
