// `t1 report` as a person calls it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openFileStore } from "../../src/store/file-store.ts";
import { t1 } from "../run/tiny-run.ts";
import { temporaryFolder } from "../store/temporary-store.ts";
import { makeRun } from "./make-run.ts";

describe("t1 report", () => {
  it("writes the file and says where it is, and refuses what is not there", async () => {
    const folder = await temporaryFolder();
    const [store, out] = [join(folder, "store"), join(folder, "out.html")];
    await makeRun(await openFileStore(store), "r", { iterations: 2 });
    const [written, missing, unwritable] = await Promise.all([
      t1("report", "r", "--local", store, "--out", out, "--json"),
      t1("report", "other", "--local", store, "--out", join(folder, "other.html")),
      t1("report", "r", "--local", store, "--out", join(folder, "nowhere", "out.html")),
    ]);
    const text = await readFile(out, "utf8");
    expect(JSON.parse(written.stdout)).toEqual({
      run: "r",
      file: out,
      sizeBytes: Buffer.byteLength(text),
      iterationCount: 2,
      evaluationCount: 0,
      episodeCount: 12,
      leftOutCount: 0,
      problems: [],
    });
    expect(text).toMatch(/^<!doctype html>.*<\/html>\n$/s);
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("runs/other/run.json")]);
    expect([unwritable.code, unwritable.stderr]).toEqual([
      2,
      expect.stringContaining("cannot write the file"),
    ]);
  });
});
