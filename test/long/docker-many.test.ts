// Sixty-four sandboxes at once: each works by itself, and nothing of any is left.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import { createDockerProvider, type DockerProvider } from "../../src/sandbox/docker/provider.ts";
import { importImage, noDocker } from "../sandbox/docker-images.ts";

const why = noDocker === undefined ? "" : ` (not here: ${noDocker})`;

describe.skipIf(noDocker !== undefined)(`64 containers${why}`, () => {
  let provider: DockerProvider;
  let reference: string;

  beforeAll(async () => {
    reference = await importImage("t1-test/many:1");
    provider = await createDockerProvider();
  }, 120_000);
  afterAll(() => provider[Symbol.asyncDispose](), 120_000);

  test("start, run commands and end", async () => {
    const use = async (index: number): Promise<string> => {
      const sandbox = await provider.create(
        {
          image: { kind: "docker", reference, files: [] },
          workdir: "/app",
          env: {},
          network: "none",
          diskBytes: 1 << 20,
        },
        { id: `many/${process.pid}/${index}`, generation: 1, deadlineMs: Date.now() + 3_000_000 },
      );
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
    const engine = await Engine.open();
    const { value } = await engine.call("GET", "/containers/json?all=true");
    engine.close();
    const left = (value as readonly { Labels: Record<string, string> }[]).filter(({ Labels }) =>
      Labels["t1.lease.id"]?.startsWith(`many/${process.pid}/`),
    );
    expect(left).toEqual([]);
  });
});
