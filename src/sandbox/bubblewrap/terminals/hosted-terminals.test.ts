// What becomes of terminals when what keeps them, or what they were opened in, comes to its end.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostSpec } from "../../../../test/sandbox/bubblewrap-sandboxes.ts";
import { onlyChild, TERMINAL_HOST } from "../../../../test/sandbox/processes.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "../provider.ts";

const SIZE = { columns: 80, rows: 24 };
const PATIENCE = { timeout: 8_000 };

/** One for each test: the process that keeps terminals is its own. */
let provider: BubblewrapProvider;
let count = 0;
beforeEach(() => {
  provider = createBubblewrapProvider();
});
afterEach(() => provider[Symbol.asyncDispose]());

function create() {
  const lease = { id: `terminals/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 };
  return provider.create(hostSpec(1 << 20), lease);
}

function terminalHost(): number {
  return onlyChild(process.pid, TERMINAL_HOST);
}

test("terminals are lost with the process that keeps them, the sandbox is not, and the next ones have another", async () => {
  const sandbox = await create();
  const terminal = await sandbox.terminal(SIZE);
  process.kill(terminalHost(), "SIGKILL");
  await terminal.closed;
  await expect(terminal.send("exit\n")).rejects.toMatchObject({ name: "SandboxLost", retryable: true });
  const next = await sandbox.terminal(SIZE);
  await next.send("echo $((6*7))\n");
  await expect.poll(() => next.screen(), PATIENCE).toContain("42");
  await next[Symbol.asyncDispose]();
});

test("a provider whose terminal host has just been killed is disposed of, also twice at once", async () => {
  const sandbox = await create();
  await sandbox.terminal(SIZE);
  await sandbox[Symbol.asyncDispose]();
  process.kill(terminalHost(), "SIGKILL");
  await new Promise(resolve => setImmediate(resolve)); // its channel has closed by now, and its end is not heard
  await Promise.all([provider[Symbol.asyncDispose](), provider[Symbol.asyncDispose]()]);
});

test("a terminal whose shell has ended is let go of with its sandbox", async () => {
  const sandbox = await create();
  const terminal = await sandbox.terminal(SIZE);
  await terminal.send("exit\n");
  await terminal.closed;
  await terminal.readNew();
  await sandbox[Symbol.asyncDispose]();
  await expect(terminal.readNew()).rejects.toMatchObject({ name: "SandboxLost" });
});

test("a machine that has no terminal left is a Failure, and not the end of those that are there", async () => {
  const sandbox = await create();
  const terminal = await sandbox.terminal(SIZE);
  execFileSync("prlimit", ["--pid", `${terminalHost()}`, "--nofile=16"]);
  const refused = sandbox.terminal(SIZE);
  await expect(refused).rejects.toMatchObject({ name: "SandboxUnavailable", retryable: true });
  await terminal.send("echo $((6*7))\n");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("42");
});

test("the process that keeps terminals has nothing of this one's environment", async () => {
  const sandbox = await create();
  await sandbox.terminal(SIZE);
  const environment = readFileSync(`/proc/${terminalHost()}/environ`, "utf8");
  const names = environment.split("\0").map(variable => variable.split("=")[0]);
  expect(names.filter(name => name !== "" && !name?.startsWith("NODE_CHANNEL_"))).toEqual([
    "NODE_COMPILE_CACHE",
  ]);
});
