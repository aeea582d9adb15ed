import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listProcesses, onlyChild, SPAWNER } from "./processes.ts";

test("a program in a folder called t1 is not taken for the process that starts sandboxes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-processes-"));
  const clone = join(folder, "t1");
  mkdirSync(clone);
  writeFileSync(join(clone, "wait.mjs"), "setInterval(() => {}, 1000);\n");
  const program = spawn(process.execPath, [join(clone, "wait.mjs")], { stdio: "ignore" });
  const spawner = spawn("perl", ["-e", `$0 = '${SPAWNER}'; sleep 60`], { stdio: "ignore" });
  onTestFinished(() => {
    for (const child of [program, spawner]) child.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  });
  const isNamed = () => listProcesses().some(({ pid, words }) => pid === spawner.pid && words[0] === SPAWNER);
  await expect.poll(isNamed, { timeout: 10_000 }).toBe(true);
  expect(onlyChild(process.pid, SPAWNER)).toBe(spawner.pid);
  expect(() => onlyChild(process.pid)).toThrow("expected one child");
});
