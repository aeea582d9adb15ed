import { expect, test } from "vitest";
import { differenceOf } from "./difference.ts";

test("mounts and files of the engine are nobody's changes", () => {
  const paths = ["/.t1", "/.t1/listener", "/proc/x", "/etc/hosts", "/.dockerenv", "/dev/shm/f"];
  const difference = differenceOf(paths.map(path => [path, "added", "file", false, null]));
  expect(difference).toEqual({ changes: [], carried: [], cleared: [] });
});
