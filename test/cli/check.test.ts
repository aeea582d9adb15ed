// `t1 tasks check` from outside: what it prints, what it keeps, and that it goes on where it was killed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CheckEntry } from "../../src/cli/check-report.ts";
import { t1 } from "../run/tiny-run.ts";
import { makePool } from "./make-pool.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

describe("t1 tasks check", () => {
  let folder: string;
  let pool: string;
  let report: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "t1-check-"));
    pool = join(folder, "corpus");
    report = join(folder, "report.jsonl");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const entries = (): readonly CheckEntry[] =>
    readFileSync(report, "utf8")
      .split("\n")
      .filter(line => line !== "")
      .map(line => CheckEntry.parse(JSON.parse(line)));
  const check = (...more: string[]) => t1("tasks", "check", pool, "--report", report, ...more);

  test("counts by outcome and reason, and checks again only what changed", async () => {
    const paths = await makePool(pool, 4);
    const broken = join(pool, "even/task-0");
    writeFileSync(join(broken, "solution/solve.sh"), "#!/bin/sh\ntrue\n");
    writeFileSync(join(pool, "even/task-2/task.toml"), "steps = 1\n");

    const first = await check();
    expect(first).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^can be trained on here +tasks\n[- ]+\nyes +2\n(no: its solution does not pass +1\nno: does not load +1|no: does not load +1\nno: its solution does not pass +1)\n/,
      ),
    });
    expect(first.stdout).toMatch(
      /even\/task-0: no: its solution does not pass\n {4}outcome 0, expected 1; not passing: /,
    );
    // Also the fix, which stands last.
    expect(first.stdout).toMatch(/even\/task-2: no: does not load\n(?: {4}.*\n)* {4}fix: /);
    expect(first.stdout).toContain("2 of 4 checked tasks can be trained on here\n");
    expect(
      entries()
        .map(({ path }) => path)
        .sort(),
    ).toEqual(paths);

    const second = await check("--json");
    expect(second.code).toBe(1);
    const result = JSON.parse(second.stdout);
    expect(result).toMatchObject({ report, unchecked: [] });
    expect(result.tasks.map((entry: CheckEntry) => entry.path)).toEqual(paths);
    expect(entries()).toHaveLength(4);

    appendFileSync(join(pool, "odd/deep/task-1/instruction.md"), "\n");
    const third = await check("--task", "task-1", "odd/deep/task-3");
    expect(third).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of them known") });
    expect(entries().map(({ path }) => path)).toHaveLength(5);
    expect((await check("--task", "task-3", "--again")).stdout).not.toContain("known");
    expect(entries()).toHaveLength(6);
  });

  test("goes on where it was killed, also in the middle of a line", async () => {
    const paths = await makePool(pool, 6);
    const words = [MAIN, "tasks", "check", pool, "--report", report, "--at-once", "2"];
    const killed = spawn(process.execPath, words, { stdio: "ignore" });
    while (!existsSync(report) || entries().length < 2) await sleep(20);
    killed.kill("SIGKILL");
    await once(killed, "exit");
    const before = entries();
    expect(before.length).toBeLessThan(6);
    appendFileSync(report, JSON.stringify(before[0]).slice(0, 50));

    const { code, stdout } = await check();
    expect([code, stdout]).toEqual([0, expect.stringContaining(`${before.length} of them known`)]);
    const lines = readFileSync(report, "utf8")
      .split("\n")
      .filter(line => line.endsWith("}"));
    expect(lines.map(line => JSON.parse(line).path).sort()).toEqual(paths);
  });

  test("keeps what it has when it is interrupted, and says so", async () => {
    await makePool(pool, 6);
    const words = [MAIN, "tasks", "check", pool, "--report", report, "--at-once", "2"];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", data => {
      output += data;
    });
    while (!existsSync(report) || entries().length < 1) await sleep(20);
    child.kill("SIGINT");
    const [code] = await once(child, "close");
    expect([code, output]).toEqual([75, expect.stringMatching(/\d not checked: the same command goes on/)]);
    expect(output).toContain("interrupted");
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining("6 of 6") });
  });

  test("keeps no result of a task whose files changed while it was checked", async () => {
    const [first = ""] = await makePool(pool, 1);
    const test = join(pool, first, "tests/test.sh");
    const solution = join(pool, first, "solution/solve.sh");
    const quick = readFileSync(solution, "utf8");
    // A solution takes long enough for a change, and its files are read before.
    writeFileSync(solution, `sleep 1\n${quick}`);
    const checked = check();
    const deadline = Date.now() + 60_000;
    while (!existsSync(report) && Date.now() < deadline) await sleep(20);
    await sleep(600);
    appendFileSync(test, "# changed\n");
    expect(await checked).toMatchObject({ code: 75, stdout: expect.stringContaining("changed while") });
    expect(entries()).toEqual([]);
    writeFileSync(solution, quick);
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 1") });
  });

  test("says what it cannot use", async () => {
    expect(await check()).toMatchObject({ code: 2, stderr: expect.stringContaining("cannot read a folder") });
    await makePool(pool, 1);
    expect(await check("--task", "none")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such task"),
    });
    expect(await t1("tasks", "check", pool, "--report", "/dev/null")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("it is no file"),
    });
    vi.stubEnv("DOCKER_HOST", "tcp://127.0.0.1:9");
    // Never another engine than the one that was named.
    expect(await check("--sandboxes", "docker")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no engine of this machine: tcp://127.0.0.1:9: DOCKER_HOST"),
    });
    vi.unstubAllEnvs();
    expect(await check("--sandboxes", "vm")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("bubblewrap, docker"),
    });
    const images = join(folder, "images.yaml");
    writeFileSync(images, "verifier: { network: public }\n");
    expect(await check("--images", images)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/images\.yaml: verifier\.network: .*public\n.*--sandboxes docker/),
    });
  });
});
