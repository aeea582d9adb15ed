// `t1 tasks generate` and what is already where it would write.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeTinyRun, t1, t1Through } from "../run/tiny-run.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-generate-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const generate = (...words: string[]) =>
  t1("tasks", "generate", "--out", folder, "--pool", "development", "--count", "2", ...words);

test("tasks of another seed are not taken for those that were asked for", async () => {
  expect((await generate()).code).toBe(0);
  expect(await generate()).toMatchObject({ code: 0, stdout: expect.stringContaining("there already") });
  expect(await generate("--seed", "1")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("another pool is there"),
  });
  expect((await generate("--seed", "1", "--force")).stdout).toContain("written");
});

test("--force deletes nothing but generated tasks", async () => {
  const pool = join(folder, "development");
  mkdirSync(pool);
  writeFileSync(join(pool, "thesis.tex"), "");
  expect(await generate("--force")).toMatchObject({ code: 2, stderr: expect.stringContaining("thesis.tex") });
  expect(readdirSync(pool)).toEqual(["thesis.tex"]);
});

test("a file in the place of a pool stays", async () => {
  writeFileSync(join(folder, "development"), "mine");
  expect(await generate()).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("cannot write the tasks"),
  });
  expect(readFileSync(join(folder, "development"), "utf8")).toBe("mine");
});

test("says where folders cannot be made, instead of trying for ever", async () => {
  for (const out of ["/proc/t1/pools", "/dev/null"])
    expect(await generate("--out", out)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`cannot write the tasks: ${out}`),
    });
  const tiny = await makeTinyRun({ tasks: 1, iterations: 1, settings: "rollout:\n  episodes: 1\n" });
  const start = await t1("run", "start", tiny.config, "--name", "x", "--local", "/proc/t1/store");
  rmSync(tiny.folder, { recursive: true });
  expect(start).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("store cannot be made: /proc/t1/store"),
  });
  const shell = ["sh", "-c", `cd '${folder}' && rmdir '${folder}' && exec "$@"`, "sh"];
  const gone = await t1Through(shell, "tasks", "list", "pool");
  mkdirSync(folder);
  expect(gone).toMatchObject({ code: 2, stderr: expect.stringContaining("was removed") });
});

test("a list shows the tasks that can be loaded beside what is wrong with the others", async () => {
  await generate();
  const pool = join(folder, "development");
  writeFileSync(join(pool, "development-0", "task.toml"), "version = [");
  const { code, stdout, stderr } = await t1("tasks", "list", pool);
  expect(code).toBe(2);
  expect(stdout).toMatch(/development-0 +cannot be loaded\s/);
  expect(stdout).toMatch(/development-1 +\S+ +\S+ +1 +[0-9a-f]{12}/);
  expect(stderr).toContain("1 of 2 tasks cannot be loaded");
  expect(stderr).toContain("development-0");
});
