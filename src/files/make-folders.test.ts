import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeFolders } from "./make-folders.ts";

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "t1-folders-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("makes what is missing, and says what that was", () => {
  const folder = freshFolder();
  expect(makeFolders(join(folder, "a/b"))).toEqual([join(folder, "a"), join(folder, "a/b")]);
  expect(statSync(join(folder, "a/b")).isDirectory()).toBe(true);
  expect(makeFolders(join(folder, "a/b"))).toEqual([]);
});

test("gives the folders that it makes their permissions, and leaves others", () => {
  const folder = freshFolder();
  makeFolders(join(folder, "a"), { mode: 0o755 });
  makeFolders(join(folder, "a/b/c"), { mode: 0o700 });
  const modes = ["a", "a/b", "a/b/c"].map(name => statSync(join(folder, name)).mode & 0o777);
  expect(modes).toEqual([0o755, 0o700, 0o700]);
});

test("ends where no folder can be made", () => {
  const folder = freshFolder();
  writeFileSync(join(folder, "file"), "");
  symlinkSync(join(folder, "nowhere/at/all"), join(folder, "dangling"));
  expect(() => makeFolders("/proc/t1/store")).toThrow("ENOENT");
  expect(() => makeFolders(join(folder, "file/store"))).toThrow("ENOTDIR");
  expect(() => makeFolders(join(folder, "dangling/store"))).toThrow("ENOENT");
});
