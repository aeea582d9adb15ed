import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { constants, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { OutputPace } from "./output-pace.ts";
import { OutputReader } from "./output-reader.ts";
import { startTime } from "./processes.ts";

/** 2 MB in which no part is like another. */
const PRINTING = "seq 300000";
const PRINTED = execFileSync("sh", ["-c", PRINTING], { maxBuffer: 1 << 24 });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-reader-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A command whose output is read, as commands of sandboxes have it. */
function read(command: string, pace?: OutputPace) {
  const path = join(folder, "out");
  execFileSync("mkfifo", [path]);
  const chunks: Buffer[] = [];
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const reader = new OutputReader(fd, chunk => chunks.push(Buffer.from(chunk)), pace);
  const child = spawn("sh", ["-c", `exec >"$0"; ${command}`, path], { stdio: "ignore" });
  return { reader, child, exited: once(child, "exit"), chunks, output: () => Buffer.concat(chunks) };
}

test.each([
  ["as fast as it comes", undefined],
  ["with pauses", { bytesPerSecond: 8 << 20, burstBytes: 100_000 }],
  ["with a pause after every chunk", { bytesPerSecond: 32 << 20, burstBytes: 1 }],
])("all that a command prints is read, in its order: %s", async (_, rate) => {
  const { reader, exited, output } = read(PRINTING, rate === undefined ? undefined : new OutputPace(rate));
  await exited;
  reader.finish();
  expect(output().equals(PRINTED)).toBe(true);
});

test("what a command left while its reader paused is read at its end, whenever that is", async () => {
  let seenBytes = 0;
  for (const lifeMs of [5, 10, 20, 40, 80, 160]) {
    const { reader, child, exited, output } = read(
      PRINTING,
      new OutputPace({ bytesPerSecond: 1 << 20, burstBytes: 1 }),
    );
    await sleep(lifeMs);
    child.kill("SIGKILL");
    await exited;
    reader.finish();
    const seen = output();
    seenBytes += seen.length;
    expect(seen.equals(PRINTED.subarray(0, seen.length))).toBe(true);
    rmSync(join(folder, "out"));
  }
  expect(seenBytes).toBeGreaterThan(0);
});

test("a command that prints without end, a line at a time, is looked at no oftener than its pace allows", async () => {
  const pace = new OutputPace({ bytesPerSecond: 1 << 20, burstBytes: 1 << 20 });
  const { reader, child, exited, chunks } = read("while :; do echo x; done", pace);
  await sleep(1_500);
  const seen = chunks.length;
  child.kill("SIGKILL");
  await exited;
  reader.finish();
  expect(seen).toBeGreaterThan(64);
  // What a burst and the rate allow in three times as long, at 16 KB each.
  expect(seen).toBeLessThan(64 + 3 * 1.5 * 64);
});

test("what a background process prints after its command has ended is swallowed at the same pace", async () => {
  const pidFile = join(folder, "pid");
  const pace = new OutputPace({ bytesPerSecond: 1 << 20, burstBytes: 1 });
  const { reader, exited } = read(`yes & echo $! > ${pidFile}`, pace);
  await exited;
  reader.finish();
  await sleep(1_000); // as fast as it comes, it would have printed all that it may, and be dead
  const pid = Number(readFileSync(pidFile, "utf8"));
  expect(startTime(pid)).toBeDefined();
  process.kill(pid, "SIGKILL");
});

test("a command that prints without end leaves the rest of the process most of its time", async () => {
  const pace = new OutputPace({ bytesPerSecond: 1 << 20, burstBytes: 1 << 20 });
  const { reader, child, exited, output } = read("yes", pace);
  await sleep(1_500);
  const seenBytes = output().length;
  child.kill("SIGKILL");
  await exited;
  reader.finish();
  expect(seenBytes).toBeGreaterThan(1 << 20);
  // A burst, what the rate allows in so long a time, and a chunk that was taken before it was counted.
  expect(seenBytes).toBeLessThan(4 << 20);
});
