import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noImageHealthcheck } from "../../../test/sandbox/docker-images.ts";
import { createDockerBuilder } from "./docker-builder.ts";

const docker = (...words: string[]) => spawnSync("docker", words, { encoding: "utf8", timeout: 20_000 });
const { status, stderr } = docker("version", "--format", "{{.Server.Version}}");
const problem =
  status === 0 ? undefined : `no docker daemon answers: ${stderr?.trim() ?? "docker is missing"}`;

describe.skipIf(problem !== undefined)(
  `images by docker${problem === undefined ? "" : ` (skipped: ${problem})`}`,
  () => {
    const context = mkdtempSync(join(tmpdir(), "t1-docker-"));
    const dockerfile = join(context, "Dockerfile");
    const references: string[] = [];
    beforeAll(() => {
      mkdirSync(join(context, "files"));
      writeFileSync(join(context, "files", "f"), "1");
    });
    afterAll(() => {
      docker("image", "rm", "--force", ...references);
      rmSync(context, { recursive: true, force: true });
    });

    async function build(text: string) {
      writeFileSync(dockerfile, text);
      const lines: string[] = [];
      const { build } = createDockerBuilder({ build: { network: "none", env: { UNUSED: "x" } } });
      const built = await build({
        source: { kind: "dockerfile", dockerfile, context },
        timeoutMs: 120_000,
        onProgress: line => lines.push(line),
      });
      if (built.image.kind !== "docker") throw new Error("not an image of docker");
      references.push(built.image.reference);
      return { ...built, reference: built.image.reference, lines };
    }

    test("are named by what they are made from, and made once", { timeout: 120_000 }, async () => {
      const text = "FROM scratch\nENV PATH=/opt/bin:/bin A=b=c\nWORKDIR /app\nCOPY files /app\n";
      const first = await build(text);
      expect(first).toMatchObject({
        workdir: "/app",
        env: { PATH: "/opt/bin:/bin", A: "b=c" },
        lines: [expect.stringContaining("building t1-task:")],
      });
      const again = await build(text);
      expect(again).toMatchObject({ reference: first.reference, hash: first.hash, lines: [] });
      writeFileSync(join(context, "files", "f"), "2");
      expect((await build(text)).reference).not.toBe(first.reference);
      const named = createDockerBuilder({ build: { network: "none", env: {} } });
      const source = { kind: "image", name: first.reference } as const;
      expect((await named.build({ source, timeoutMs: 10_000 })).hash).toBe(first.hash);
    });

    const whyUnchecked = noImageHealthcheck === undefined ? "" : ` (skipped: ${noImageHealthcheck})`;
    test.skipIf(noImageHealthcheck !== undefined)(
      `have the health check of their Dockerfile${whyUnchecked}`,
      { timeout: 120_000 },
      async () => {
        const { healthcheck } = await build(
          "FROM scratch\nHEALTHCHECK --interval=2s --retries=4 CMD echo ok\n",
        );
        const times = { intervalMs: 2000, timeoutMs: 30_000, retries: 4 };
        expect(healthcheck).toMatchObject({ command: "echo ok", ...times });
      },
    );

    test("are made anew when what they start from is another", { timeout: 120_000 }, async () => {
      const base = "t1-test/base:1";
      const derive = async (text: string): Promise<string> => {
        docker("tag", (await build(text)).reference, base);
        return (await build(`FROM ${base} AS x\nFROM x\nENV Y=1\n`)).reference;
      };
      references.push(base);
      const first = await derive("FROM scratch\nENV X=1\n");
      expect(await derive("FROM scratch\nENV X=1\n")).toBe(first);
      expect(await derive("FROM scratch\nENV X=2\n")).not.toBe(first);
    });

    test("of a name that cannot be pulled are built as the task says", { timeout: 120_000 }, async () => {
      writeFileSync(dockerfile, "FROM scratch\nENV Z=1\n");
      const lines: string[] = [];
      const source = {
        kind: "image",
        name: "localhost:1/nowhere/x:1",
        otherwise: { dockerfile, context },
      } as const;
      const request = { source, timeoutMs: 60_000, onProgress: (line: string) => lines.push(line) };
      const { image } = await createDockerBuilder({ build: { network: "none", env: {} } }).build(request);
      if (image.kind === "docker") references.push(image.reference);
      expect(lines.join("\n")).toMatch(
        /cannot be pulled: its Dockerfile is built instead\n.*building t1-task:/,
      );
    });

    test("that cannot be built say why", { timeout: 120_000 }, async () => {
      await expect(build("FROM scratch\nCOPY missing /x\n")).rejects.toThrow(
        /docker build ended with exit code 1: .*Dockerfile: .*missing/s,
      );
    });
  },
);
