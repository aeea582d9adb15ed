// `t1` writes to pipes that nobody reads to the end.
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { makeTinyRun } from "../run/tiny-run.ts";

const T1 = join(import.meta.dirname, "../../t1");

async function shell(script: string, from: "stdout" | "stderr" = "stdout") {
  const ended = await promisify(execFile)("bash", ["-c", script, T1]);
  return ended[from];
}

test("a reader that stops early ends a command without a word", async () => {
  const script = 'set -o pipefail; "$0" config schema | head -n 1; echo "exit code $?"';
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script, T1]);
  expect(stdout).toBe("{\nexit code 0\n");
  expect(stderr).toBe("");
});

test("output that has no room is said to have none, and is no answer of a gate", async () => {
  const text = await shell('"$0" config schema 2>&1 > /dev/full; echo "exit code $?"');
  expect(text).toMatch(/^t1: cannot write the output: ENOSPC[^\n]*\nexit code 2\n$/);
});

test("a run goes on when nobody reads its progress any more", async () => {
  const tiny = await makeTinyRun({ tasks: 2, iterations: 2, settings: "rollout:\n  episodes: 2\n" });
  onTestFinished(() => rmSync(tiny.folder, { recursive: true, force: true }));
  // `true` has ended long before the first iteration has.
  const start = `"$0" run start '${tiny.config}' --name r --local '${tiny.store}'`;
  const text = await shell(`{ ${start} 2>&3 >&4; echo "exit code $?" >&4; } 3>&1 4>&2 | true`, "stderr");
  // Print a path, not a URL, because people hand it to other programs.
  expect(text).toBe(`r is done: policy 2 lies in ${tiny.store}/runs/r/policies/000002/\nexit code 0\n`);
});
