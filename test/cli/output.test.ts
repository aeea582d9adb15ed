// What is written where nobody reads it to its end.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const T1 = join(import.meta.dirname, "../../t1");

test("a reader that stops early ends a command without a word", async () => {
  const script = 'set -o pipefail; "$0" config schema | head -n 1; echo "exit code $?"';
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script, T1]);
  expect(stdout).toBe("{\nexit code 0\n");
  expect(stderr).toBe("");
});
