// Sandboxes in containers by the thousand, and sixty-four at once: each works by itself, and nothing of any is left.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import { createDockerProvider, type DockerProvider } from "../../src/sandbox/docker/provider.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { importImage, noDocker } from "../sandbox/docker-images.ts";
import { listProcesses } from "../sandbox/processes.ts";

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;

describe.skipIf(noDocker !== undefined)(`containers${why}`, () => {
  let engine: Engine;
  let provider: DockerProvider;
  let reference: string;
  let runParent: string;
  let count = 0;

  beforeAll(async () => {
    engine = await Engine.open();
    reference = await importImage("t1-test/many:1");
    runParent = mkdtempSync(join(tmpdir(), "t1-m-"));
    provider = await createDockerProvider({ runParent });
  }, 120_000);
  afterAll(async () => {
    await provider[Symbol.asyncDispose]();
    engine.close();
    rmSync(runParent, { recursive: true, force: true });
  }, 120_000);

  function create(): Promise<Sandbox> {
    const image = { kind: "docker", reference, files: [] } as const;
    return provider.create(
      { image, workdir: "/app", env: {}, network: "none", diskBytes: 1 << 20 },
      { id: `many/${process.pid}/${count++}`, generation: 1, deadlineMs: Date.now() + 3_000_000 },
    );
  }

  async function left(): Promise<readonly unknown[]> {
    const { value } = await engine.call("GET", "/containers/json?all=true");
    return (value as readonly { Labels: Record<string, string> }[]).filter(({ Labels }) =>
      Labels["t1.lease.id"]?.startsWith(`many/${process.pid}/`),
    );
  }

  test("by the thousand leave no container, process, mount, file or handle", async () => {
    const mark = `${700_000 + (process.pid % 100_000)}`;
    const use = async (): Promise<void> => {
      const sandbox = await create();
      await sandbox.exec(`sleep ${mark} & setsid sleep ${mark} & head -c 100000 /dev/zero`, {
        timeoutMs: 600_000,
      });
      await sandbox[Symbol.asyncDispose]();
    };
    // Warm up with the same concurrency as later, since the client keeps its connections to the engine.
    for (let index = 0; index < 4; index++) await Promise.all(Array.from({ length: 4 }, use));
    const held = async () => ({
      containers: await left(),
      processes: listProcesses().filter(({ words }) => words.includes(mark)).length,
      descriptors: readdirSync("/proc/self/fd").length,
      mounts: readFileSync("/proc/self/mounts", "utf8").split(runParent).length - 1,
      folders: readdirSync(join(runParent, `t1-${process.getuid?.()}`, "docker")).length,
    });
    const before = await held();
    expect(before).toMatchObject({ containers: [], processes: 0 });
    for (let round = 0; round < 250; round++) await Promise.all(Array.from({ length: 4 }, use));
    await expect.poll(held, { timeout: 60_000 }).toEqual(before);
  });

  test("sixty-four at once start, run commands and end", async () => {
    const use = async (index: number): Promise<string> => {
      const sandbox = await create();
      let printed = "";
      for (let turn = 0; turn < 10; turn++) {
        const { stdout } = await sandbox.exec(`echo ${index}.${turn} >> f; cat f`, { timeoutMs: 600_000 });
        printed = capturedText(stdout);
      }
      await sandbox[Symbol.asyncDispose]();
      return printed;
    };
    const printed = await Promise.all(Array.from({ length: 64 }, (_, index) => use(index)));
    expect(printed).toEqual(
      printed.map((_, index) => Array.from({ length: 10 }, (_, turn) => `${index}.${turn}\n`).join("")),
    );
    expect(await left()).toEqual([]);
  });
});
