// A clone may lie anywhere: in a folder called t1, below blanks and letters beyond ASCII, reached through a link.
import { type ExecFileException, execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeTinyRun } from "../run/tiny-run.ts";

const ROOT = join(import.meta.dirname, "../..");
const NOT_COPIED = new Set([".git", ".t1", "node_modules"]);

let folder: string;
/** A link to the copy, whose path is much longer than a socket's may be (108 bytes). */
let clone: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-clone-"));
  const real = join(folder, "a b ß", "long ".repeat(20).trim(), "t1");
  mkdirSync(real, { recursive: true });
  for (const name of readdirSync(ROOT).filter(name => !NOT_COPIED.has(name)))
    cpSync(join(ROOT, name), join(real, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(real, "node_modules"));
  clone = join(folder, "linked");
  symlinkSync(real, clone);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command in the clone. Never throws for its exit code. */
async function inClone(command: string): Promise<{ readonly code: unknown; readonly output: string }> {
  const options = { cwd: clone, env: { ...process.env, VITEST: undefined } };
  return promisify(execFile)("sh", ["-c", command], options).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error: ExecFileException) => ({ code: error.code, output: `${error.stdout}${error.stderr}` }),
  );
}

test("t1 runs through links on PATH, one that leads to another included", async () => {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(join(clone, "t1"), join(bin, "t1"));
  symlinkSync("t1", join(bin, "t1-too"));
  const { code, output } = await inClone(`PATH='${bin}':"$PATH"; cd / && t1 --version && t1-too --version`);
  expect([code, output]).toEqual([0, expect.stringMatching(/^(\d+\.\d+\.\d+)\n\1\n$/)]);
});

test("a run is played to its end", async () => {
  const tiny = await makeTinyRun({ tasks: 2, iterations: 1, settings: "rollout:\n  episodes: 2\n" });
  cpSync(tiny.folder, join(clone, "my runs ß"), { recursive: true });
  rmSync(tiny.folder, { recursive: true });
  const { code, output } = await inClone("./t1 run start 'my runs ß/run.yaml' --name r");
  expect([code, output]).toEqual([0, expect.stringContaining("r is done: policy 1 lies in ")]);
});

test("tests that look for processes of sandboxes and terminals find theirs", async () => {
  const { code, output } = await inClone(
    "node_modules/.bin/vitest run --project fast src/sandbox/bubblewrap/terminals/hosted-terminals.test.ts",
  );
  expect([code, output]).toEqual([0, expect.stringContaining("1 passed")]);
});
