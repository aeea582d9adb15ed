// What becomes of sandboxes when their driver, a process that it needs for them, or their time comes to an end.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { hostSpec, spawnerHere } from "../../../test/sandbox/bubblewrap-sandboxes.ts";
import { listProcesses, onlyChild, SPAWNER, TERMINAL_HOST } from "../../../test/sandbox/processes.ts";
import { makeRootFolder } from "../../../test/sandbox/root-folder.ts";
import { startTime } from "../processes.ts";
import type { Lease, Sandbox, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { createBubblewrapProvider } from "./provider.ts";

const SPEC = hostSpec(1 << 20);
const HOLD = fileURLToPath(new URL("../../../test/sandbox/hold-sandbox.ts", import.meta.url));
const PATIENCE = { timeout: 8_000 };
/** How long a driver's sandbox may live: no test takes as long. */
const HOUR_MS = 3_600_000;

let runParent: string;
const providers: SandboxProvider[] = [];
const drivers: ChildProcess[] = [];
let count = 0;

beforeEach(() => {
  runParent = mkdtempSync(join(tmpdir(), "t1-life-"));
  chmodSync(runParent, 0o755); // the sandboxes of root run as another user
});
afterEach(async () => {
  vi.useRealTimers();
  for (const driver of drivers.splice(0)) driver.kill("SIGKILL");
  await Promise.all(providers.splice(0).map(provider => provider[Symbol.asyncDispose]()));
  rmSync(runParent, { recursive: true, force: true });
});

function open(): SandboxProvider {
  const provider = createBubblewrapProvider(runParent);
  providers.push(provider);
  return provider;
}

function lease(lifeMs = 60_000): Lease {
  return { id: `life/${count++}`, generation: 1, deadlineMs: Date.now() + lifeMs };
}

/** A driver in a process of its own, with a sandbox in which something runs that no other test runs. */
async function startDriver(id = "held") {
  const mark = `${900_000 + Math.floor(performance.now()) + count++}`;
  const command = `setsid sleep ${mark} >/dev/null 2>&1 & sleep ${mark} >/dev/null 2>&1 &`;
  const driver = spawn(process.execPath, [HOLD, runParent, id, `${HOUR_MS}`, command], {
    stdio: ["pipe", "pipe", "inherit"], // it ends with its input, should this process be killed
  });
  drivers.push(driver);
  const exited = once(driver, "exit").then(() => Promise.reject(new Error("the driver ended")));
  if (driver.stdout !== null) await Promise.race([once(driver.stdout, "data"), exited]);
  exited.catch(() => undefined);
  const left = () => listProcesses().filter(({ words }) => words.includes(mark)).length;
  const spawner = onlyChild(driver.pid);
  await expect.poll(left, PATIENCE).toBe(2);
  return { driver, spawner, left };
}

/**
 * Stops a driver until the test is over. It cannot see that its input ends then, so another process kills it, also when
 * this one was killed: it waits for the end of a pipe from here.
 */
function hang(driver: ChildProcess): void {
  const guard = spawn("sh", ["-c", `read over; kill -KILL ${driver.pid}`], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  onTestFinished(async () => {
    guard.stdin?.end();
    await once(guard, "exit");
  });
  driver.kill("SIGSTOP");
}

function runFolder(): string {
  return join(runParent, `t1-${process.getuid?.()}`);
}

function leaseFiles(): readonly string[] {
  const folder = join(runFolder(), "leases");
  return readdirSync(folder).flatMap(owner => readdirSync(join(folder, owner)));
}

test.each(["", ", and what starts sandboxes with it,"])(
  "a driver that is killed%s leaves no process, and its files are swept by the next one",
  async also => {
    const { driver, spawner, left } = await startDriver("of the dead");
    if (also !== "") process.kill(spawner, "SIGKILL");
    driver.kill("SIGKILL");
    await expect.poll(left, PATIENCE).toBe(0);
    await expect.poll(() => startTime(spawner), PATIENCE).toBeUndefined();
    expect(leaseFiles()).toHaveLength(1);
    const next = open();
    await expect.poll(() => next.sweep(), PATIENCE).toEqual(["of the dead"]);
    expect(leaseFiles()).toHaveLength(0);
    expect(await next.sweep()).toEqual([]);
    await next[Symbol.asyncDispose]();
    for (const child of ["leases", "pipes"]) expect(readdirSync(join(runFolder(), child))).toEqual([]);
  },
);

/** A driver that does no more than its program says. @returns what it printed, once it has ended without an error */
async function runDriver(
  program: string,
  { spec = SPEC, prepare = "" }: { readonly spec?: SandboxSpec; readonly prepare?: string } = {},
): Promise<string> {
  const provider = new URL("./provider.ts", import.meta.url);
  const processes = new URL("../../../test/sandbox/processes.ts", import.meta.url);
  const text = `
    import { createBubblewrapProvider } from ${JSON.stringify(provider)};
    import { listProcesses, onlyChild } from ${JSON.stringify(processes)};
    const lease = id => ({ id, generation: 1, deadlineMs: Date.now() + ${HOUR_MS} });
    const provider = createBubblewrapProvider(${JSON.stringify(runParent)});
    const spec = ${JSON.stringify(spec)};
    const size = { columns: 80, rows: 24 };
    const sandbox = await provider.create(spec, lease("left"));
    ${program}
  `;
  const words = ["-c", `${prepare} exec "$0" "$@"`, process.execPath, "--input-type=module", "-e", text];
  const driver = spawn("sh", words, { stdio: ["ignore", "pipe", "inherit"] });
  drivers.push(driver);
  let said = "";
  driver.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  expect((await once(driver, "close"))[0]).toBe(0);
  return said.trim();
}

test("a driver that has nothing more to do ends, and its sandboxes with it", async () => {
  const mark = "765432";
  await runDriver(`
    await sandbox.exec("sleep ${mark} >/dev/null 2>&1 &", { timeoutMs: 10_000 });
    await sandbox.terminal(size);
  `);
  const left = () => listProcesses().filter(({ words }) => words.includes(mark)).length;
  await expect.poll(left, PATIENCE).toBe(0);
});

test("so does one whose sandbox has an entrypoint, which runs for ever", async () => {
  const folder = join(runParent, "image");
  makeRootFolder(folder);
  const image = {
    kind: "root",
    folder,
    entrypoint: ["/bin/sh", "-c", 'exec "$@"', "sh"],
    files: [],
  } as const;
  await runDriver("", { spec: { ...SPEC, image } });
});

test("a driver waits for a command that has closed its output, until it is ended", async () => {
  const command = "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2; exec >&- 2>&-; sleep 60";
  const said = await runDriver(`
    const { end } = await sandbox.exec(${JSON.stringify(command)}, { timeoutMs: 500 });
    console.log(end.kind);
  `);
  expect(said).toBe("timed-out");
});

test.each([
  ["what it asks of a terminal", 'terminal.send("x").catch(error => console.log(error.name))', "SandboxLost"],
  ["its sandbox's end", "sandbox[Symbol.asyncDispose]()", ""],
])("a driver waits for %s when the terminals are lost meanwhile", async (_, waits, answer) => {
  const said = await runDriver(`
    const terminal = await sandbox.terminal(size);
    const terminalHost = onlyChild(process.pid, ${JSON.stringify(TERMINAL_HOST)});
    process.kill(terminalHost, "SIGSTOP");
    setTimeout(() => process.kill(terminalHost, "SIGKILL"), 300).unref();
    const waiting = ${waits};
    await new Promise(resolve => setTimeout(resolve, 200));
    process.on("exit", () => console.log("waited"));
    await waiting;
  `);
  expect(said).toBe(`${answer}\nwaited`.trim());
  expect(leaseFiles()).toHaveLength(answer === "" ? 0 : 1);
});

test("a driver that has no descriptor left is told so, and keeps no sandbox that nobody knows of", async () => {
  const program = `
    const { closeSync, openSync } = await import("node:fs");
    const spawner = onlyChild(process.pid, "${SPAWNER}");
    const names = new Set();
    const told = error => names.add(error.name);
    for (let spare = 0; spare < 8; spare++) {
      const taken = [];
      try { for (;;) taken.push(openSync("/dev/null")); } catch {}
      for (const fd of taken.splice(0, spare)) closeSync(fd);
      await sandbox.exec("true", { timeoutMs: 10_000 }).catch(told);
      await sandbox.terminal(size).then(terminal => terminal[Symbol.asyncDispose](), told);
      await provider.create(spec, lease("other " + spare)).then(other => other[Symbol.asyncDispose](), told);
      for (const fd of taken) closeSync(fd);
    }
    const { end } = await sandbox.exec("true", { timeoutMs: 10_000 });
    const entryProcesses = listProcesses().filter(({ parent, words }) => parent === spawner && words[0] === "${SPAWNER}");
    console.log([...names].sort().join(" "), end.exitCode, entryProcesses.length);
  `;
  expect(await runDriver(program, { prepare: "ulimit -n 512;" })).toBe("SandboxLost SandboxUnavailable 0 1");
});

test("a driver that hangs loses its sandboxes to whoever sweeps after their deadline, not before", {
  timeout: 30_000,
}, async () => {
  const { driver, left } = await startDriver("hanging");
  hang(driver);
  const other = open(); // it sweeps by the clock of this process
  expect(await other.sweep()).toEqual([]);
  expect(left()).toBe(2);
  vi.setSystemTime(Date.now() + HOUR_MS);
  expect(await other.sweep()).toEqual(["hanging"]);
  vi.useRealTimers();
  await expect.poll(left, PATIENCE).toBe(0);
});

test("a sandbox of a living driver is not swept", async () => {
  const { left } = await startDriver();
  expect(await open().sweep()).toEqual([]);
  expect(left()).toBe(2);
});

test("nobody adopts a sandbox: it ends with its driver", async () => {
  expect(await open().adopt(lease())).toBeUndefined();
});

test("what starts sandboxes takes them along when it is killed, and the next ones have another", async () => {
  const provider = open();
  const sandbox = await provider.create(SPEC, lease());
  const running = sandbox.exec("sleep 30", { timeoutMs: 10_000 });
  const lost = expect(running).rejects.toMatchObject({ name: "SandboxLost", retryable: true });
  process.kill(spawnerHere(), "SIGKILL");
  await lost;
  await expect(sandbox.exec("true", { timeoutMs: 30_000 })).rejects.toMatchObject({ name: "SandboxLost" });
  const next = await provider.create(SPEC, lease());
  expect((await next.exec("true", { timeoutMs: 30_000 })).end).toEqual({ kind: "exited", exitCode: 0 });
});

test("a driver that was busy when a command ended in time does not take it for a slow one", async () => {
  const sandbox = await open().create(SPEC, lease());
  const running = sandbox.exec("sleep 0.1", { timeoutMs: 1_000 });
  await sleep(50); // it is under way
  const until = performance.now() + 1_500;
  while (performance.now() < until);
  const { end, durationMs } = await running;
  expect(end).toEqual({ kind: "exited", exitCode: 0 });
  expect(durationMs).toBeGreaterThanOrEqual(100);
  expect(durationMs).toBeLessThan(1_000);
});

test("a first process that is gone is a lost sandbox, not a failed command", async () => {
  const provider = open();
  const sandbox = await provider.create(SPEC, lease());
  const bwrap = onlyChild(onlyChild(spawnerHere()), "--block-fd");
  const first = onlyChild(bwrap);
  const running = sandbox.exec("sleep 30", { timeoutMs: 10_000 });
  const lost = expect(running).rejects.toMatchObject({ name: "SandboxLost" });
  await sleep(100);
  process.kill(first, "SIGKILL");
  await lost;
  await expect(sandbox.exec("true", { timeoutMs: 1000 })).rejects.toMatchObject({ name: "SandboxLost" });
});

test("forty sandboxes, one after the other, leave no process, descriptor, lease or pipe", async () => {
  const provider = createBubblewrapProvider(runParent);
  const use = async (): Promise<void> => {
    const sandbox: Sandbox = await provider.create(SPEC, lease());
    await sandbox.exec("sleep 60 >/dev/null 2>&1 & echo x > /tmp/f", { timeoutMs: 5_000 });
    await sandbox[Symbol.asyncDispose]();
  };
  const children = () => listProcesses().filter(({ parent }) => parent === process.pid).length;
  const descriptors = () => readdirSync("/proc/self/fd").length;
  await use();
  const before = { children: children(), descriptors: descriptors() };
  for (let index = 0; index < 40; index++) await use();
  await expect.poll(children, PATIENCE).toBe(before.children);
  // Fewer when the first sandbox's last ones were still being closed.
  await expect.poll(descriptors, PATIENCE).toBeLessThanOrEqual(before.descriptors);
  expect(leaseFiles()).toEqual([]);
  await provider[Symbol.asyncDispose]();
  for (const child of ["leases", "pipes", "mount"]) expect(readdirSync(join(runFolder(), child))).toEqual([]);
});
