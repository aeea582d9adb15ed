import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findTasks } from "./find-tasks.ts";

const folder = mkdtempSync(join(tmpdir(), "t1-corpus-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("tasks are found at any depth, but neither in tasks nor in hidden folders", () => {
  for (const path of [
    "b/task.toml",
    "a/deep/one/task.toml",
    "b/tests/inner/task.toml",
    ".git/x/task.toml",
    "c/readme.md",
  ]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), "");
  }
  expect(findTasks(folder)).toEqual({ folder, names: ["a/deep/one", "b"] });
  expect(findTasks(join(folder, "b")).names).toEqual(["."]);
  expect(() => findTasks(join(folder, "c"))).toThrow(/no task in the folder: .*c: folders with a task\.toml/);
  expect(() => findTasks(join(folder, "none"))).toThrow(/cannot read a folder of tasks/);
});
