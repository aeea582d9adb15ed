// Sandboxes by the thousand, and hostile ones: what takes too long for every run of the tests.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BubblewrapProvider, createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import { listProcesses } from "../sandbox/processes.ts";

const SPEC = {
  image: { kind: "host", files: [] },
  workdir: "/app",
  env: {},
  network: "none",
  diskBytes: 1 << 20,
} as const;
const PATIENCE = { timeout: 20_000 };

let runParent: string;
let provider: BubblewrapProvider;
let count = 0;

beforeEach(() => {
  runParent = mkdtempSync(join(tmpdir(), "t1-many-"));
  chmodSync(runParent, 0o755);
  provider = createBubblewrapProvider(runParent);
});
afterEach(async () => {
  await provider[Symbol.asyncDispose]();
  rmSync(runParent, { recursive: true, force: true });
});

function create() {
  return provider.create(SPEC, { id: `many/${count++}`, generation: 1, deadlineMs: Date.now() + 600_000 });
}

function held() {
  return {
    children: listProcesses().filter(({ parent }) => parent === process.pid).length,
    descriptors: readdirSync("/proc/self/fd").length,
    mounts: readFileSync("/proc/self/mounts", "utf8").split("\n").length,
  };
}

test("a thousand sandboxes leave no process, descriptor, mount or memory", async () => {
  const use = async (): Promise<void> => {
    const sandbox = await create();
    await sandbox.exec("sleep 60 & setsid sleep 60 & yes | head -c 100000", { timeoutMs: 20_000 });
    await sandbox[Symbol.asyncDispose]();
  };
  for (let index = 0; index < 50; index++) await use();
  const before = held();
  const memoryBefore = process.memoryUsage().rss;
  for (let round = 0; round < 125; round++) await Promise.all(Array.from({ length: 8 }, use));
  await expect.poll(held, PATIENCE).toEqual(before);
  expect(process.memoryUsage().rss - memoryBefore).toBeLessThan(100 << 20);
});

test("sixty-four sandboxes at once keep apart what their commands print", async () => {
  const sandboxes = await Promise.all(Array.from({ length: 64 }, create));
  for (let turn = 0; turn < 10; turn++) {
    const results = await Promise.all(
      sandboxes.map((sandbox, index) =>
        sandbox.exec(`echo ${index}:${turn} | tee -a f`, { timeoutMs: 60_000 }),
      ),
    );
    expect(results.map(({ stdout }) => capturedText(stdout))).toEqual(
      sandboxes.map((_, index) => `${index}:${turn}\n`),
    );
  }
  const files = await Promise.all(sandboxes.map(sandbox => sandbox.exec("wc -l < f", { timeoutMs: 60_000 })));
  expect(files.map(({ stdout }) => capturedText(stdout).trim())).toEqual(sandboxes.map(() => "10"));
});

test("a fork bomb stays in its sandbox, and killing ends it", async () => {
  const [bombed, other] = [await create(), await create()];
  const bomb = await bombed.exec("bomb() { bomb | bomb & }; bomb; sleep 5", { timeoutMs: 3_000 });
  expect(bomb.end.kind).not.toBe("exited");
  const startedAt = performance.now();
  expect(capturedText((await other.exec("echo ok", { timeoutMs: 20_000 })).stdout)).toBe("ok\n");
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  await bombed.killAgents();
  expect(capturedText((await bombed.exec("cd /proc && echo [0-9]*", { timeoutMs: 20_000 })).stdout)).toMatch(
    /^1 \d+\n$/,
  );
});

test("a command that prints without end costs no memory", async () => {
  const sandbox = await create();
  await sandbox.exec("yes", { timeoutMs: 500 });
  const before = process.memoryUsage().rss;
  const { stdout } = await sandbox.exec("yes", { timeoutMs: 5_000, outputLimitBytes: 1 << 20 });
  expect(stdout.omittedBytes).toBeGreaterThan(50 << 20);
  expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20);
});
