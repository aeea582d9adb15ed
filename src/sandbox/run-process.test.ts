import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProcess, type StartedProcess } from "./run-process.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-run-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Our end of a pipe, and the other one. */
function openPipe(name: string, ours: "read" | "write"): readonly [number, number] {
  const path = join(folder, name);
  execFileSync("mkfifo", [path]);
  const [read, write] = [constants.O_RDONLY | constants.O_NONBLOCK, constants.O_WRONLY];
  const first = openSync(path, read);
  const second = openSync(path, ours === "write" ? write | constants.O_NONBLOCK : write);
  return ours === "read" ? [first, second] : [second, first];
}

/** Started as the daemon starts one: nobody but the process can read its input. */
function start(script: string): StartedProcess {
  const startedAt = performance.now();
  const [[input, stdin], [output, stdout], [errors, stderr]] = [
    openPipe("in", "write"),
    openPipe("out", "read"),
    openPipe("err", "read"),
  ];
  const child = spawn("/bin/sh", ["-c", script], { stdio: [stdin, stdout, stderr], detached: true });
  for (const fd of [stdin, stdout, stderr]) closeSync(fd);
  return {
    ended: once(child, "exit").then(([code, signal]) => ({
      end: signal === null ? { kind: "exited", exitCode: code } : { kind: "signalled", signal },
      durationMs: performance.now() - startedAt,
    })),
    pid: async () => child.pid,
    pipes: { input: { write: input }, output, errors },
  };
}

const silent = { onStdout: () => undefined, onStderr: () => undefined };

test("a process that has ended before its input is written is a result like any other", async () => {
  const started = start("exit 4");
  await started.ended;
  const { end, isAborted } = await runProcess(started, { ...silent, stdin: Buffer.alloc(300_000) });
  expect([end, isAborted]).toEqual([{ kind: "exited", exitCode: 4 }, false]);
});

test("what ended in time is not timed out, however late its end is heard", async () => {
  const started = start("exit 4");
  const running = runProcess(started, { ...silent, limitMs: 200 });
  execFileSync("sleep", ["0.5"]); // this process is busy
  expect((await running).end).toEqual({ kind: "exited", exitCode: 4 });
});

test("at its limit the whole group ends, also those that ignore TERM", async () => {
  const started = start("trap '' TERM; sleep 60 & sleep 60");
  const { end } = await runProcess(started, { ...silent, limitMs: 200 });
  expect(end).toEqual({ kind: "timed-out", limitMs: 200 });
  const group = await started.pid();
  expect(() => process.kill(-(group ?? 0), 0)).toThrow("ESRCH");
});

test("an abort is told, with the end that came of it", async () => {
  const abort = new AbortController();
  const running = runProcess(start("sleep 60"), { ...silent, signal: abort.signal });
  abort.abort();
  const { end, isAborted } = await running;
  expect([end, isAborted]).toEqual([{ kind: "signalled", signal: "SIGTERM" }, true]);
});
