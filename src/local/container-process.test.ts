import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { runProgram } from "../asl/executors/program.ts";
import { containerProcess } from "./container-process.ts";

it("a container's process asks a bucket as whoever runs it, as a task does by its role", async () => {
  const asked: string[] = [];
  const server = createServer(({ headers }, answer) => {
    asked.push(headers.authorization ?? "");
    answer.writeHead(403).end("<Error><Code>AccessDenied</Code><Message>planned</Message></Error>");
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const endpoint = encodeURIComponent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const end = await runProgram(
    containerProcess("trainer", () => {}),
    {
      environment: {
        T1_STORE_URL: `s3://bucket/t1?endpoint=${endpoint}`,
        ...{ T1_RUN: "r", T1_ITERATION: "0", T1_THREADS: "1", T1_DEVICE: "cpu" },
      },
      command: undefined,
      signal: new AbortController().signal,
      sleep: async () => {},
    },
  );
  expect(end.exitCode).not.toBe(0);
  expect(asked[0], String(end.error)).toContain(`Credential=${process.env.AWS_ACCESS_KEY_ID}/`);
});

it("a driver's process asks the engine that the runner asks, and no other in its place", async () => {
  vi.stubEnv("DOCKER_HOST", "tcp://elsewhere:2375");
  onTestFinished(() => void vi.unstubAllEnvs());
  const folder = await mkdtemp(join(tmpdir(), "t1-process-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const end = await runProgram(
    containerProcess("driver", () => {}),
    {
      environment: {
        ...{ T1_STORE_URL: folder, T1_PHASE: "runs/r/iterations/000000/", T1_EPISODES: "0" },
        ...{ T1_POLICY_VERSION: "0", T1_SANDBOXES: "docker" },
      },
      command: undefined,
      signal: new AbortController().signal,
      sleep: async () => {},
    },
  );
  expect([end.exitCode, String(end.error)]).toEqual([
    2,
    expect.stringContaining("no engine of this machine: tcp://elsewhere:2375: DOCKER_HOST"),
  ]);
});
