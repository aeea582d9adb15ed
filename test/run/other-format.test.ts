// A run that another version of t1 wrote: refused by name, with what to do, and nothing of it is touched.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readModel } from "../../src/model/checkpoint.ts";
import { openLocalModel, readTextFormat } from "../../src/model/model-folder.ts";
import { readRun } from "../../src/run/run-record.ts";
import { openStore } from "../../src/store/open-store.ts";
import { t1 } from "./tiny-run.ts";

const FIXTURE = join(import.meta.dirname, "../fixtures/run-format-1");
let store: string;

beforeAll(() => {
  store = mkdtempSync(join(tmpdir(), "t1-format-"));
  cpSync(FIXTURE, store, { recursive: true });
});
afterAll(() => rmSync(store, { recursive: true, force: true }));

const filesOf = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter(name => !name.startsWith(".t1-store"))
    .sort();

it.each([
  ["report", ["report", "old", "--out", "/dev/null"]],
  ["resume", ["run", "resume", "old"]],
  ["evaluate", ["evaluate", "old", "--pool", FIXTURE]],
])("%s refuses format 1, and says which commit reads it and how to go on without", async (_, words) => {
  const before = filesOf(store);
  const { code, stderr } = await t1(...words, "--local", store);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("the run was written by another version of t1"),
  ]);
  expect(stderr).toContain("runs/old/run.json: expected format 2, got format 1");
  expect(stderr).toMatch(/fix: .*commit b58df94.*runs\/old\/policies\//);
  expect(filesOf(store)).toEqual(before);
});

it("run list shows it as unreadable and says the same", async () => {
  const { code, stdout, stderr } = await t1("run", "list", "--local", store);
  expect(code).toBe(0);
  expect(stdout).toMatch(/old .*unreadable/);
  expect(stderr).toContain("expected format 2, got format 1");
});

it("a format of the future is refused by its number", async () => {
  const file = join(store, "runs/old/run.json");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace('"t1-run-1"', "3"));
  await expect(readRun(await openStore(store), "old")).rejects.toThrow("expected format 2, got 3");
  writeFileSync(file, text);
});

it("a policy of format 1 can start a new run, as the message says", async () => {
  const policy = await openLocalModel(join(FIXTURE, "runs/old/policies/000002"));
  expect((await readModel(policy, "language")).config.layerCount).toBe(2);
  expect((await readTextFormat(policy, { endOfTurn: "<|im_end|>" })).tokenizer.vocabSize).toBe(300);
});
