// Ctrl-C at a terminal, once and twice, as a person sees it, and what is left behind.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "../run/check-store.ts";
import { makeTinyRun, type TinyRun, t1 } from "../run/tiny-run.ts";
import { openBehindTerminal } from "./behind-terminal.ts";

describe("Ctrl-C", () => {
  let tiny: TinyRun;
  /** Temporary folder of this test's processes alone, so that all leftovers in it are ours. */
  let temporary: string;
  beforeAll(async () => {
    tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout:\n  episodes: 4\n" });
    temporary = join(tiny.folder, "tmp");
    mkdirSync(temporary);
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  function open(...words: readonly string[]) {
    const env = { ...process.env, TMPDIR: temporary };
    const { shown, ...rest } = openBehindTerminal([...words, "--local", tiny.store], env);
    return { ...rest, lines: () => shown().replaceAll("\r\x1b[K", "\n").split(/\r?\n/) };
  }

  test("twice ends a run at once and says what goes on; resumed, it leaves no file of either runner", async () => {
    const { pty, until, ended, lines } = open("run", "start", tiny.config, "--name", "r");
    await until("rollout");
    pty.write("\x03");
    await until("once more ends at once");
    pty.write("\x03");
    expect(await ended).toBe(130);
    // On lines of their own: a shell's next prompt stands at the beginning of one.
    expect(lines().slice(-2)).toEqual(["ended at once; t1 run resume r goes on", ""]);

    const resumed = open("run", "resume", "r");
    expect(await resumed.ended, resumed.lines().join("\n")).toBe(0);
    await checkFinishedRun(await openStore(tiny.store), "r");
    const left = readdirSync(temporary, { recursive: true, encoding: "utf8" });
    expect(left.filter(path => /phase-|run-|work\/./.test(path))).toEqual([]);
  });

  test("once stops an evaluation after the tasks at work, and the error has a line of its own", async () => {
    // Evaluate the run that was resumed to its end above.
    const { pty, until, ended, lines } = open("evaluate", "r", "--pool", tiny.pool, "--episodes", "1");
    await until("rollout");
    pty.write("\x03");
    expect(await ended).toBe(75);
    expect(lines().slice(-2)).toEqual(["t1: RunStopped: interrupted; the same command goes on", ""]);
    const again = await t1("evaluate", "r", "--pool", tiny.pool, "--episodes", "1", "--local", tiny.store);
    expect(again.code, again.stderr).toBe(0);
  });
});
