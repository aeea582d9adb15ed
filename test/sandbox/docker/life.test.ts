// What becomes of containers when their driver is killed or their time is over.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { capturedText } from "../../../src/sandbox/captured-text.ts";
import { Engine } from "../../../src/sandbox/docker/engine.ts";
import { createDockerProvider, type DockerProvider } from "../../../src/sandbox/docker/provider.ts";
import { importImage, noDocker } from "../docker-images.ts";

const HOLD = fileURLToPath(new URL("hold-docker-sandbox.ts", import.meta.url));
const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;

describe.skipIf(noDocker !== undefined)(`containers${why}`, { timeout: 120_000 }, () => {
  let engine: Engine;
  let reference: string;
  let runParent: string;
  const drivers: ChildProcess[] = [];
  const providers: DockerProvider[] = [];
  let count = 0;

  beforeAll(async () => {
    engine = await Engine.open();
    reference = await importImage("t1-test/life:1");
    // Short, for the paths of sockets; and one for all, so that the toolkit is made once.
    runParent = mkdtempSync(join(tmpdir(), "t1-l-"));
  }, 120_000);
  afterEach(async () => {
    for (const driver of drivers.splice(0)) driver.kill("SIGKILL");
    await Promise.all(providers.splice(0).map(provider => provider[Symbol.asyncDispose]()));
    for (const { Id } of await containers())
      await engine.call("DELETE", `/containers/${Id}?force=true&v=true`);
  }, 120_000);
  afterAll(() => {
    engine?.close();
    rmSync(runParent, { recursive: true, force: true });
  });

  async function containers(id?: string): Promise<readonly { Id: string; State: string }[]> {
    const label = id === undefined ? [`t1.folder`] : [`t1.lease.id=${id}`];
    const filters = encodeURIComponent(JSON.stringify({ label }));
    const { value } = await engine.call("GET", `/containers/json?all=true&filters=${filters}`);
    const listed = value as readonly { Id: string; State: string; Labels: Record<string, string> }[];
    return listed.filter(({ Labels }) => Labels["t1.folder"]?.startsWith(`${runParent}/`));
  }

  async function open(): Promise<DockerProvider> {
    const provider = await createDockerProvider({ runParent });
    providers.push(provider);
    return provider;
  }

  async function startDriver(
    lifeMs = 600_000,
  ): Promise<{ readonly driver: ChildProcess; readonly id: string }> {
    const id = `life/${process.pid}/${count++}`;
    const driver = spawn(process.execPath, [HOLD, runParent, reference, id, `${lifeMs}`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    drivers.push(driver);
    const exited = once(driver, "exit").then(() => Promise.reject(new Error("the driver ended")));
    if (driver.stdout !== null) await Promise.race([once(driver.stdout, "data"), exited]);
    exited.catch(() => undefined);
    return { driver, id };
  }

  async function kill(driver: ChildProcess): Promise<void> {
    driver.kill("SIGKILL");
    if (driver.exitCode === null && driver.signalCode === null) await once(driver, "exit");
  }

  const folders = () => readdirSync(join(runParent, `t1-${process.getuid?.()}`, "docker"));

  test("of a driver that was killed are swept, with their folders; of a living one they are not", async () => {
    const { driver, id } = await startDriver();
    const provider = await open();
    expect(await provider.sweep()).toEqual([]);
    expect(await containers(id)).toHaveLength(1);
    await kill(driver);
    expect(await provider.sweep()).toEqual([id]);
    expect(await containers(id)).toEqual([]);
    expect(folders()).toEqual([]);
    expect(await provider.sweep()).toEqual([]);
  });

  test("of a driver that was killed can be taken over as they are, with what ran", async () => {
    const { driver, id } = await startDriver();
    const provider = await open();
    const lease = { id, generation: 1, deadlineMs: Date.now() + 600_000 };
    await expect(provider.adopt(lease)).rejects.toMatchObject({ name: "SandboxUnavailable" });
    await kill(driver);
    const sandbox = await provider.adopt(lease);
    if (sandbox === undefined) throw new Error("nothing was taken over");
    const look = await sandbox.exec("cat f; echo $COLOUR; cat /proc/[0-9]*/comm", { timeoutMs: 60_000 });
    expect(capturedText(look.stdout)).toMatch(/^kept\nred\n[\s\S]*sleep/);
    const repeated = await sandbox.exec("echo kept > f; sleep 900 &", {
      timeoutMs: 60_000,
      requestId: "turn-1",
    });
    expect(repeated.end).toEqual({ kind: "exited", exitCode: 0 });
    const sleepers = await sandbox.exec("cat /proc/[0-9]*/comm | grep -c sleep", { timeoutMs: 60_000 });
    expect(capturedText(sleepers.stdout)).toBe("1\n");
    expect((await sandbox.changedFiles()).map(({ path }) => path)).toEqual(["/app/f"]);
    expect(await provider.sweep()).toEqual([]);
    await sandbox[Symbol.asyncDispose]();
    expect(await containers(id)).toEqual([]);
    expect(await provider.adopt(lease)).toBeUndefined();
  });

  test("end at their deadline by themselves, while nobody drives or sweeps them", async () => {
    const { driver, id } = await startDriver(30_000);
    await kill(driver);
    const state = async () => (await containers(id))[0]?.State;
    await expect.poll(state, { timeout: 60_000, interval: 500 }).toBe("exited");
    expect(await (await open()).sweep()).toEqual([id]);
    expect(await containers(id)).toEqual([]);
  });
});
