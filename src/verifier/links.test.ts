import { describe, expect, it } from "vitest";
import { leadsInto } from "./links.ts";

const lead = (path: string, links: Readonly<Record<string, string>>): boolean =>
  leadsInto(path, ["/tests"], new Map(Object.entries(links)));

describe("a link leads into the tests", () => {
  it.each([
    ["/tests", true],
    ["/tests/expected.txt", true],
    ["/tests/../app/x", false],
    ["../tests/a", true],
    [".././/tests", true],
    ["../../../../tests", true],
    ["/tests2/a", false],
    ["/app/tests", false],
    ["tests", false],
    ["", false],
    ["/proc/self/root/tests/x", true],
    ["/proc/1/task/1/cwd/x", true],
    ["/proc/self/mounts", false],
    ["/dev/stdout", false],
  ])("by %j: %s", (target, expected) => {
    expect(lead("/app/out", { "/app/out": target })).toBe(expected);
  });

  it("by way of other links, also where `..` follows one", () => {
    expect(lead("/app/out", { "/app/out": "d/x", "/app/d": "/tests" })).toBe(true);
    expect(lead("/app/out", { "/app/out": "r/tests/x", "/app/r": "/" })).toBe(true);
    expect(lead("/app/out", { "/app/out": "r/../tests/x", "/app/r": "/usr" })).toBe(true);
    expect(lead("/app/out", { "/app/out": "r/../tests/x", "/app/r": "/usr/lib" })).toBe(false);
  });

  it("not in a circle, and not where no link is", () => {
    expect(lead("/app/out", { "/app/out": "b", "/app/b": "out" })).toBe(false);
    expect(lead("/tests/x", {})).toBe(false);
  });
});
