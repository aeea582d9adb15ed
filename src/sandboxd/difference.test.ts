import { expect, test } from "vitest";
import { carriedWithout, differenceOf } from "./difference.ts";

test("mounts and files of the engine are nobody's changes", () => {
  const paths = ["/.t1", "/.t1/door", "/proc/x", "/etc/hosts", "/.dockerenv", "/dev/shm/f"];
  const difference = differenceOf(paths.map(path => [path, "added", "file", false, null]));
  expect(difference).toEqual({ changes: [], carried: [], cleared: [] });
});

test("what stays behind is neither carried nor cleared, nor is a folder cleared that holds some of it", () => {
  const difference = {
    changes: [],
    carried: ["/app/kept", "/tests", "/tests/x", "/testsuite"],
    cleared: ["/tests/old", "/usr/share", "/usr/share/doc", "/etc/passwd"],
  };
  expect(carriedWithout(difference, ["/tests/", "/usr/share/doc/a"])).toEqual({
    paths: ["/app/kept", "/testsuite"],
    removed: ["/etc/passwd"],
  });
  expect(carriedWithout(difference, [])).toEqual({
    paths: difference.carried,
    removed: ["/usr/share/doc", "/usr/share", "/tests/old", "/etc/passwd"],
  });
});
