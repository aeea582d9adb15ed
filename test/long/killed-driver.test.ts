// A driver that is killed at any moment leaves nothing once the next one has swept: no process, mount, file or container.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import { createDockerProvider } from "../../src/sandbox/docker/provider.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { importImage, noDocker } from "../sandbox/docker-images.ts";
import { listProcesses } from "../sandbox/processes.ts";

const BUSY = fileURLToPath(new URL("../sandbox/busy-driver.ts", import.meta.url));
const MARK = "987654";
const PATIENCE = { timeout: 60_000, interval: 100 };

let runParent: string;
beforeEach(() => {
  runParent = mkdtempSync(join(tmpdir(), "t1-b-"));
  chmodSync(runParent, 0o755);
});
afterEach(() => rmSync(runParent, { recursive: true, force: true }));

const mounts = (): number => readFileSync("/proc/self/mounts", "utf8").split(runParent).length - 1;
const marked = (): number => listProcesses().filter(({ words }) => words.includes(MARK)).length;
const ofRun = (): number =>
  listProcesses().filter(({ words }) => words.some(word => word.includes(runParent))).length;

/** @param longestMs of a driver's life after it has begun to work */
async function killOften(
  name: string,
  { rounds, longestMs, reference = "" }: { rounds: number; longestMs: number; reference?: string },
  left: () => Promise<unknown>,
  next: () => Promise<SandboxProvider>,
): Promise<void> {
  const random = new RandomStream(deriveSeed("killed driver", name));
  for (let round = 0; round < rounds; round++) {
    const driver = spawn(process.execPath, [BUSY, name, runParent, reference, MARK], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(driver.stdout, "data");
    await new Promise(resolve => setTimeout(resolve, longestMs * random.uniform()));
    expect([driver.exitCode, driver.signalCode], "it was to work until it was killed").toEqual([null, null]);
    driver.kill("SIGKILL");
    await once(driver, "exit");
    const provider = await next();
    const afterSweep = async () => {
      await provider.sweep();
      return { marked: marked(), mounts: mounts(), left: await left() };
    };
    await expect.poll(afterSweep, PATIENCE).toEqual({ marked: 0, mounts: 0, left: [] });
    await provider[Symbol.asyncDispose]();
    await expect.poll(ofRun, PATIENCE).toBe(0);
  }
}

test("bubblewrap", async () => {
  const folder = join(runParent, `t1-${process.getuid?.()}`);
  const left = async () => [
    // Each driver has a folder of its own for its leases, the one that sweeps included, which goes with it.
    ...readdirSync(join(folder, "leases")).flatMap(owner => readdirSync(join(folder, "leases", owner))),
  ];
  await killOften("bubblewrap", { rounds: 60, longestMs: 600 }, left, async () =>
    createBubblewrapProvider(runParent),
  );
});

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;
test.skipIf(noDocker !== undefined)(`docker${why}`, async () => {
  const reference = await importImage("t1-test/busy:1");
  const engine = await Engine.open();
  const left = async () => {
    const { value } = await engine.call("GET", "/containers/json?all=true");
    const containers = (value as readonly { Id: string; Labels: Record<string, string> }[])
      .filter(({ Labels }) => Labels["t1.folder"]?.startsWith(`${runParent}/`))
      .map(({ Id }) => Id);
    return [...containers, ...readdirSync(join(runParent, `t1-${process.getuid?.()}`, "docker"))];
  };
  await killOften("docker", { rounds: 20, longestMs: 4_000, reference }, left, () =>
    createDockerProvider({ runParent }),
  );
  engine.close();
});
