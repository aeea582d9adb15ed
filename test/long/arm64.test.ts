// The sandbox toolkit on 64-bit ARM: it is made there, and runs in an ARM image that holds nothing but a shell.
// The processor is qemu's; that Fargate's is the same is for an account to show.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import type { Terminal } from "../../src/sandbox/sandbox.ts";
import { findArm64 } from "../sandbox/arm64.ts";
import { type LocalDaemon, startLocalDaemon } from "../sandbox/local-daemon.ts";

const found = await findArm64();
const title =
  "missing" in found ? `the toolkit on arm64 (skipped: ${found.missing})` : "the toolkit on arm64";
const PATIENCE = { timeout: 120_000, interval: 200 };
/** e_machine of an ELF file (elf(5)). */
const EM_AARCH64 = 183;

/** The screen as one text: the answer to early input stands behind a prompt, on the same line. */
async function shownBy(terminal: Terminal): Promise<string> {
  return (await terminal.screen()).join("\n");
}

describe.skipIf("missing" in found)(title, { timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-arm64-"));
  let toolkit: string;
  let daemon: LocalDaemon;

  beforeAll(async () => {
    if ("missing" in found) return;
    const made = await found.node(["containers/sandbox-toolkit/assemble.ts", "/out"], folder);
    toolkit = join(folder, basename(made));
    const foreign = { toolkit, busybox: found.busybox, within: found.within };
    daemon = await startLocalDaemon("busybox", { lifeMs: 3_000_000, foreign });
  }, 900_000);
  afterAll(async () => {
    await daemon?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function output(command: string, timeoutMs = 120_000): Promise<string> {
    const { end, stdout, stderr } = await daemon.sandbox.exec(command, { timeoutMs });
    expect(end, capturedText(stderr)).toEqual({ kind: "exited", exitCode: 0 });
    return capturedText(stdout);
  }

  test("holds that processor's programs alone", () => {
    const machineOf = (path: string): number => readFileSync(join(toolkit, path)).readUInt16LE(18);
    for (const path of ["ld.so", "bin/node", "bin/sleep", "lib/libc.so.6", "lib/libstdc++.so.6"])
      expect([path, machineOf(path)]).toEqual([path, EM_AARCH64]);
  });

  test("runs commands as process 1, with their input, ends and limits", async () => {
    expect(await output("busybox uname -m; echo $$; busybox ls -A /")).toMatch(
      /^aarch64\n\d+\n\.t1\napp\nbin\ndev\nproc\ntmp\n$/,
    );
    const options = { timeoutMs: 120_000, stdin: Buffer.from("given") };
    const { end, stdout } = await daemon.sandbox.exec("busybox cat; exit 3", options);
    expect([end, capturedText(stdout)]).toEqual([{ kind: "exited", exitCode: 3 }, "given"]);
    const late = await daemon.sandbox.exec("busybox sleep 600", { timeoutMs: 1_000 });
    expect(late.end).toEqual({ kind: "timed-out", limitMs: 1_000 });
  });

  test("opens a terminal", async () => {
    const terminal = await daemon.sandbox.terminal({ columns: 80, rows: 10 });
    await terminal.send("busybox uname -m; echo to$((1+1))\n");
    await expect.poll(() => shownBy(terminal), PATIENCE).toContain("to2");
    expect(await shownBy(terminal)).toContain("aarch64");
    await terminal[Symbol.asyncDispose]();
  });

  test("takes files, and gives them back", async () => {
    await output("echo kept > /app/f");
    const found = await daemon.sandbox.download("/app", 1 << 20);
    if (!("tar" in found)) throw new Error(`no archive: ${Object.keys(found)}`);
    expect(await daemon.sandbox.upload(found.tar, "/other")).toEqual({ unpacked: true });
    expect(await output("busybox cat /other/f")).toBe("kept\n");
  });

  test("ends what was left running", async () => {
    await output("busybox sleep 600 & echo left");
    await daemon.sandbox.killAgents();
    expect(await output("busybox ps")).not.toContain("sleep 600");
  });

  test("does not run a command twice when the connection is cut", async () => {
    const running = output("echo x >> /app/once; busybox sleep 3; echo done");
    await expect.poll(() => output("busybox cat /app/once 2>/dev/null; true"), PATIENCE).toBe("x\n");
    daemon.stream().close();
    expect(await running).toBe("done\n");
    expect(await output("busybox cat /app/once")).toBe("x\n");
  });
});
