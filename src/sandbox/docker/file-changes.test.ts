import { describe, expect, test } from "vitest";
import { carriedWithout } from "../daemon/difference.ts";
import type { Described } from "../daemon/protocol.ts";
import { type Before, compareFiles, type ImageEntry } from "./file-changes.ts";

const owner = { uid: 0, gid: 0 };
const folder: ImageEntry = { kind: "folder", mode: 0o755, ...owner };
const file: ImageEntry = { kind: "file", mode: 0o644, ...owner };

function now(entry: ImageEntry, rest: Partial<Described> = {}): Described {
  return { ...entry, changed: "1", ...(entry.kind === "folder" ? { names: [] } : {}), ...rest };
}

const image = new Map([
  ["/etc", folder],
  ["/etc/passwd", file],
  ["/usr", folder],
  ["/usr/share", folder],
  ["/usr/share/doc", folder],
  ["/usr/share/doc/a", file],
]);
const before: Before = { image, placed: new Map() };

function changesOf(difference: ReturnType<typeof compareFiles>) {
  return Object.fromEntries(difference.changes.map(({ path, change, kind }) => [path, `${change} ${kind}`]));
}

test("a folder of the image that only holds changes is carried for its mode, and not listed", () => {
  const difference = compareFiles(
    [
      { Path: "/etc", Kind: 0 },
      { Path: "/etc/passwd", Kind: 0 },
    ],
    new Map([
      ["/etc", now(folder, { names: ["passwd"] })],
      ["/etc/passwd", now(file)],
    ]),
    before,
  );
  expect(changesOf(difference)).toEqual({ "/etc/passwd": "modified file" });
  expect(difference.carried).toEqual(["/etc", "/etc/passwd"]);
});

describe("what a folder of the image held is deleted with it", () => {
  const below = { "/usr/share/doc": "deleted folder", "/usr/share/doc/a": "deleted file" };

  test("when it is gone", () => {
    const difference = compareFiles([{ Path: "/usr/share", Kind: 2 }], new Map(), before);
    expect(changesOf(difference)).toEqual({ "/usr/share": "deleted folder", ...below });
  });

  test("when another was made in its place, of which the engine tells nothing more", () => {
    const listed = [{ Path: "/usr/share", Kind: 0 }];
    const difference = compareFiles(listed, new Map([["/usr/share", now(folder)]]), before);
    expect(changesOf(difference)).toEqual(below);
  });

  test("when a link took its place, whatever lies where the link leads", () => {
    const link = now({ kind: "link", mode: 0o777, ...owner });
    const placed = new Map([["/usr/share/doc/own", now(file)]]);
    const entries = new Map([
      ["/usr/share", link],
      ["/usr/share/doc/own", now(file)],
    ]);
    const difference = compareFiles([{ Path: "/usr/share", Kind: 0 }], entries, { image, placed });
    expect(changesOf(difference)).toEqual({
      "/usr/share": "modified link",
      ...below,
      "/usr/share/doc/own": "deleted file",
    });
    expect(difference.cleared).toContain("/usr/share");
  });
});

test("a placed file is modified when anything about it changed since, and not otherwise", () => {
  const placed = new Map([
    ["/app", now(folder)],
    ["/app/same", now(file, { changed: "7" })],
    ["/app/touched", now(file, { changed: "7" })],
  ]);
  const entries = new Map([
    ["/app", now(folder, { names: ["same", "touched"], changed: "9" })],
    ["/app/same", now(file, { changed: "7" })],
    ["/app/touched", now(file, { changed: "8" })],
  ]);
  const listed = [...placed.keys()].map(Path => ({ Path, Kind: 1 }));
  expect(changesOf(compareFiles(listed, entries, { image, placed }))).toEqual({
    "/app/touched": "modified file",
  });
});

test("mounts and files of the engine are nobody's changes", () => {
  const paths = ["/.t1", "/.t1/door", "/proc/x", "/etc/hosts", "/.dockerenv", "/dev/shm/f"];
  const entries = new Map(paths.map(path => [path, now(file)]));
  const difference = compareFiles(
    paths.map(Path => ({ Path, Kind: 1 })),
    entries,
    before,
  );
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
