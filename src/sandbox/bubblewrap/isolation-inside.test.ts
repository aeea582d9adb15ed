// What a hostile command may try. Each of these was possible with one of the ways to enter a sandbox that we did not take.
import { existsSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { hostSpec } from "../../../test/sandbox/bubblewrap-sandboxes.ts";
import { capturedText } from "../captured-text.ts";
import type { ExecResult, Sandbox, SandboxProvider } from "../sandbox.ts";
import { createBubblewrapProvider } from "./provider.ts";

const SPEC = hostSpec(4 << 20);

let provider: SandboxProvider;
const made: Sandbox[] = [];
let count = 0;

beforeAll(async () => {
  provider = createBubblewrapProvider();
});
afterEach(async () => {
  await Promise.all(made.splice(0).map(sandbox => sandbox[Symbol.asyncDispose]()));
});
afterAll(() => provider[Symbol.asyncDispose]());

async function create(): Promise<Sandbox> {
  const lease = { id: `isolation/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 };
  const sandbox = await provider.create(SPEC, lease);
  made.push(sandbox);
  return sandbox;
}

function run(sandbox: Sandbox, command: string): Promise<ExecResult> {
  return sandbox.exec(command, { timeoutMs: 20_000 });
}

async function output(sandbox: Sandbox, command: string): Promise<string> {
  return capturedText((await run(sandbox, command)).stdout);
}

test.each([
  ["write into the system folders", "echo x > /usr/t1-was-here"],
  ["write over a program", ": >> /usr/bin/env"],
  ["mount the system folders writable", "mount -o remount,rw,bind /usr && echo x > /usr/t1-was-here"],
  ["mount anything", "mount -t tmpfs none /app"],
  ["take a mount away", "umount /proc || umount -l /usr"],
  ["make a device", "mknod /app/disk b 254 0"],
  ["make a user namespace", "unshare --user true"],
  ["make any namespace", "unshare --mount true || unshare --net true || unshare --pid true"],
  ["enter the namespaces of process 1", "nsenter --target 1 --mount --pid true"],
  ["change a kernel setting", "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern"],
  ["raise the number of user namespaces", "echo 10 > /proc/sys/user/max_user_namespaces"],
  [
    "read the memory and files of process 1",
    "cat /proc/1/environ || cat /proc/1/mem || readlink /proc/1/exe || ls /proc/1/root/",
  ],
  ["change the toolkit", "echo x > /.t1/lib/libc.so.6 || echo x > /.t1/new"],
  ["put another toolkit in its place", "mv /.t1 /old || rm -rf /.t1 || rmdir /.t1"],
  ["have more processes than allowed", "ulimit -p 100000 || ulimit -u 100000"],
  ["dump core", "ulimit -c 1000"],
  ["become another user", "chown 1000 . || setpriv --reuid=1000 true"],
  [
    "fill shared memory or /dev beyond the limit",
    "dd if=/dev/zero of=/dev/shm/f bs=1M count=5 || echo x > /dev/f",
  ],
])("a command cannot %s", async (_, command) => {
  const sandbox = await create();
  const { end, stderr } = await run(sandbox, `{ ${command}; } 2>&1 >/dev/null; code=$?; exit $code`);
  expect(end, capturedText(stderr)).not.toEqual({ kind: "exited", exitCode: 0 });
  expect(existsSync("/usr/t1-was-here")).toBe(false);
});

test("a debugger cannot take hold of process 1", async () => {
  const sandbox = await create();
  // ptrace(PTRACE_ATTACH, 1): 101 on x86-64, 117 on arm64; with perl, which every Debian has.
  const attach = `perl -e 'print syscall(${process.arch === "arm64" ? 117 : 101}, 16, 1, 0, 0) == 0 ? "held" : "refused"'`;
  if ((await output(sandbox, "command -v perl")) === "") return;
  expect(await output(sandbox, attach)).toBe("refused");
});

test("a preloaded library of the agent's reaches its own programs only, not those that drop the powers", async () => {
  const sandbox = await create();
  expect(capturedText((await run(sandbox, ":")).stderr)).toBe("");
  await run(sandbox, "echo /app/none.so > /etc/ld.so.preload");
  // The loader complains once per program.
  const complaints = capturedText((await run(sandbox, ":")).stderr).match(/none\.so.*cannot be preloaded/g);
  expect(complaints).toHaveLength(1);
});

test("variables of a task do not reach programs of this machine", async () => {
  const lease = { id: `isolation/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 };
  const env = { LD_PRELOAD: "/app/none.so", LD_LIBRARY_PATH: "/app" };
  const sandbox = await provider.create({ ...SPEC, env }, lease);
  made.push(sandbox);
  // The command's own shell has the variables, and nothing else has.
  const complaints = capturedText((await run(sandbox, ":")).stderr).match(/none\.so.*cannot be preloaded/g);
  expect(complaints).toHaveLength(1);
});

test("a command has only the capabilities that are harmless in its own namespace, and can get no others", async () => {
  const sandbox = await create();
  const status = await output(sandbox, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status");
  const fields = Object.fromEntries(
    status
      .trim()
      .split("\n")
      .map(line => line.split(/:\s*/)),
  );
  // Bits as in linux/capability.h: 0 chown, 1 dac_override, 3 fowner, 4 fsetid, 5 kill, 6 setgid, 7 setuid,
  // 10 net_bind_service, 18 sys_chroot.
  const kept = [0, 1, 3, 4, 5, 6, 7, 10, 18].reduce((bits, bit) => bits | (1n << BigInt(bit)), 0n);
  expect(fields).toEqual({
    CapInh: "0".repeat(16),
    CapPrm: kept.toString(16).padStart(16, "0"),
    CapEff: kept.toString(16).padStart(16, "0"),
    CapBnd: kept.toString(16).padStart(16, "0"),
    CapAmb: "0".repeat(16),
    NoNewPrivs: "1",
  });
});

test("on the machine a command is nobody who owns anything, whoever the driver is", async () => {
  const sandbox = await create();
  const [, inside, outside] =
    /^\s*(\d+)\s+(\d+)\s+1\n$/.exec(await output(sandbox, "cat /proc/self/uid_map")) ?? [];
  expect(inside).toBe("0");
  expect(outside).not.toBe("0");
});

test("a command inherits nothing that is open in the driver, a terminal of another sandbox least of all", async () => {
  const [other, sandbox] = [await create(), await create()];
  await using terminal = await other.terminal({ columns: 80, rows: 24 });
  const listing = "for f in /proc/self/fd/*; do readlink $f; done";
  const open = (await output(sandbox, listing)).trim().split("\n");
  expect(open.filter(name => !/^(\/dev\/null|\/proc\/\d+\/fd|.*\/pipes\/.*)$/.test(name))).toEqual([]);
  await using second = await sandbox.terminal({ columns: 200, rows: 50 });
  await second.send(`${listing}; echo listed\n`);
  await expect.poll(() => second.screen(), { timeout: 8_000 }).toContain("listed");
  expect((await second.screen()).filter(line => line.includes("ptmx"))).toEqual([]);
  await terminal.send("exit\n");
});

test("nothing inside tells about this machine's folders, names and variables", async () => {
  const sandbox = await create();
  expect(await output(sandbox, "tr '\\0' ' ' < /proc/1/cmdline")).toMatch(
    /^\S*bwrap --args \d+ --info-fd \d+ --block-fd \d+ \/nonexistent $/,
  );
  const variables = (await output(sandbox, "env"))
    .trim()
    .split("\n")
    .map(line => line.split("=")[0]);
  expect(variables.sort()).toEqual(["HOME", "LANG", "PATH", "PWD"]);
  expect(await output(sandbox, "cat /etc/hostname; uname -n")).toBe("sandbox\nsandbox\n");
});

test("the network inside is loopback only", async () => {
  const sandbox = await create();
  const devices = (await output(sandbox, "cat /proc/net/dev"))
    .split("\n")
    .slice(2)
    .map(line => line.split(":")[0]?.trim());
  expect(devices.filter(Boolean)).toEqual(["lo"]);
});

test("programs of this machine work inside: those behind alternatives, names of users, shared memory", async () => {
  const sandbox = await create();
  expect(
    await output(
      sandbox,
      "echo 1 2 | awk '{ print $2 }'; id -un; echo $HOME; echo x > /dev/shm/f && cat /dev/shm/f",
    ),
  ).toBe("2\nroot\n/root\nx\n");
});

test("a command sees the processes of its own sandbox only", async () => {
  const sandbox = await create();
  const numbers = (await output(sandbox, "cd /proc && echo [0-9]*")).trim().split(" ");
  expect(numbers.length).toBeLessThanOrEqual(3);
  expect(numbers[0]).toBe("1");
});
