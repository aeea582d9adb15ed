import { expect, test } from "vitest";
import { carriedPaths } from "./successor.ts";

test("what stays behind is neither carried nor cleared, nor is a folder cleared that holds some of it", () => {
  const changed = ["/app/kept", "/tests", "/tests/x", "/testsuite"];
  const cleared = ["/tests/old", "/usr/share", "/usr/share/doc", "/etc/passwd"];
  const { isKept, removed } = carriedPaths(cleared, ["/tests/", "/usr/share/doc/a"]);
  expect(changed.filter(isKept)).toEqual(["/app/kept", "/testsuite"]);
  expect(removed).toEqual(["/etc/passwd"]);
  expect(carriedPaths(cleared, []).removed).toEqual([
    "/usr/share/doc",
    "/usr/share",
    "/tests/old",
    "/etc/passwd",
  ]);
  expect(changed.filter(carriedPaths(cleared, ["/"]).isKept)).toEqual([]);
});
