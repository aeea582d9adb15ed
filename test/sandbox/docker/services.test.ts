// Containers beside a sandbox: started in order, awaited, reached by name, and gone with it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { capturedText } from "../../../src/sandbox/captured-text.ts";
import { Engine } from "../../../src/sandbox/docker/engine.ts";
import { createDockerProvider, type DockerProvider } from "../../../src/sandbox/docker/provider.ts";
import type { Sandbox, SandboxService, SandboxSpec } from "../../../src/sandbox/sandbox.ts";
import { importImage, noDocker, noHealthchecks } from "../docker-images.ts";

const HOLD = fileURLToPath(new URL("hold-docker-sandbox.ts", import.meta.url));
const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;

/** Counts the connections that it has had. */
const COUNTER = "#!/bin/sh\nn=$(($(cat /tmp/n 2>/dev/null || echo 0) + 1)); echo $n > /tmp/n; echo $n\n";

describe.skipIf(noDocker !== undefined)(`services${why}`, { timeout: 120_000 }, () => {
  let engine: Engine;
  let provider: DockerProvider;
  let reference: string;
  let runParent: string;
  let count = 0;
  beforeAll(async () => {
    engine = await Engine.open();
    reference = await importImage("t1-test/services:1", { files: { "bin/counter": COUNTER } });
    runParent = mkdtempSync(join(tmpdir(), "t1-s-"));
    provider = await createDockerProvider({ runParent });
  }, 120_000);
  afterAll(async () => {
    await provider?.[Symbol.asyncDispose]();
    engine?.close();
    rmSync(runParent, { recursive: true, force: true });
  });

  const lease = () => ({
    ...{ id: `services/${process.pid}/${count++}`, generation: 1 },
    deadlineMs: Date.now() + 600_000,
  });
  const service = (name: string, more: Partial<SandboxService> = {}): SandboxService => ({
    ...{ name, reference, env: {}, after: [] },
    command: ["nc", "-ll", "-p", "5000", "-e", "counter"],
    ...more,
  });
  const create = (services: readonly SandboxService[], more: Partial<SandboxSpec> = {}): Promise<Sandbox> =>
    provider.create(
      {
        image: { kind: "docker", reference, files: [] },
        ...{ workdir: "/app", env: {}, network: "none", diskBytes: 8 << 20, services },
        ...more,
      },
      lease(),
    );
  const output = async (sandbox: Sandbox, command: string): Promise<string> => {
    const { stdout, stderr } = await sandbox.exec(command, { timeoutMs: 20_000 });
    return capturedText(stdout) + capturedText(stderr);
  };
  const beside = async (): Promise<number> => {
    const filters = encodeURIComponent(JSON.stringify({ label: ["t1.service.of"] }));
    const { value } = await engine.call("GET", `/containers/json?all=true&filters=${filters}`);
    return (value as { Labels: Record<string, string> }[]).filter(({ Labels }) =>
      Labels["t1.folder"]?.startsWith(`${runParent}/`),
    ).length;
  };
  const HEALTHY = { test: ["CMD-SHELL", "echo | nc localhost 5000"], intervalMs: 200, retries: 50 };

  test("are reached by name, keep what they hold for the verifier's sandbox, and go with their own", async () => {
    const sandbox = await create([service("counter", { env: { A: "b" } })]);
    expect(await output(sandbox, "echo | nc counter 5000; echo | nc localhost 5000")).toBe("1\n2\n");
    // Nobody of the sandbox can see into them.
    expect(await output(sandbox, "ls /tmp/n")).toMatch(/No such file/);
    await sandbox.exec("echo mine > /app/f", { timeoutMs: 10_000 });
    const next = await sandbox.successor(lease(), { without: [] });
    if ("refused" in next) throw new Error(next.refused);
    expect(await output(next, "cat f; echo | nc counter 5000")).toBe("mine\n3\n");
    await next[Symbol.asyncDispose]();
    expect(await output(sandbox, "echo | nc counter 5000")).toBe("4\n");
    expect(await beside()).toBe(1);
    await sandbox[Symbol.asyncDispose]();
    expect(await beside()).toBe(0);
  });

  const whyUnchecked = noHealthchecks === undefined ? "" : ` (skipped: ${noHealthchecks})`;
  test.skipIf(noHealthchecks !== undefined)(
    `start after those that they wait for, and all are awaited${whyUnchecked}`,
    async () => {
      const seed = service("seed", { command: ["sh", "-c", "sleep 1; echo | nc localhost 5000"] });
      const sandbox = await create([
        service("counter", { healthcheck: HEALTHY }),
        { ...seed, after: [{ service: "counter", condition: "healthy" }] },
        service("late", {
          command: ["sh", "-c", "echo $(echo | nc counter 5000) > /tmp/n; nc -ll -p 6000 -e cat /tmp/n"],
          after: [{ service: "seed", condition: "completed" }],
        }),
      ]);
      // The counter's health check has counted too: at least one, then the seed.
      expect(Number(await output(sandbox, "sleep 1; echo | nc late 6000"))).toBeGreaterThanOrEqual(3);
      await sandbox[Symbol.asyncDispose]();
    },
  );

  test.each([
    [
      "ends",
      { command: ["sh", "-c", "echo cannot bind; exit 3"] },
      /x does not come up: it ended with exit code 3.*cannot bind/s,
    ],
    ["has no such program", { command: ["nowhere"] }, /x does not come up/],
  ])("that %s says so, and leaves nothing", async (_, more, message) => {
    await expect(create([service("x", more)])).rejects.toThrow(message);
    expect(await beside()).toBe(0);
  });

  test.skipIf(noHealthchecks !== undefined)(
    `that are not healthy say so, and leave nothing${whyUnchecked}`,
    async () => {
      const healthcheck = { test: ["CMD", "false"], intervalMs: 100, retries: 2 };
      await expect(create([service("x", { healthcheck })])).rejects.toThrow(
        /x does not come up: its health check does not pass/,
      );
      expect(await beside()).toBe(0);
    },
  );

  test("of a driver that was killed are swept", async () => {
    const { id } = lease();
    const words = [HOLD, runParent, reference, id, "600000", JSON.stringify([service("counter")])];
    const driver = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(driver, "exit");
    try {
      if (driver.stdout !== null) await Promise.race([once(driver.stdout, "data"), exited]);
      expect(await beside()).toBe(1);
    } finally {
      driver.kill("SIGKILL");
      await exited;
    }
    const ended = await provider.sweep();
    expect([ended.filter(one => one === id), await beside()]).toEqual([[id], 0]);
  });
});
