import { afterAll, expect, test } from "vitest";
import type { SandboxSpec } from "../sandbox.ts";
import { createBubblewrapProvider } from "./provider.ts";

const provider = createBubblewrapProvider();
afterAll(() => provider[Symbol.asyncDispose]());

const SPEC: SandboxSpec = {
  image: { kind: "host", files: [] },
  workdir: "/app",
  env: {},
  network: "none",
  diskBytes: 1 << 20,
};

test.each<[string, Partial<SandboxSpec>]>([
  ["the image debian:12", { image: { kind: "docker", reference: "debian:12", files: [] } }],
  ['the network "public"', { network: "public" }],
  ['the user "worker"', { user: "worker" }],
  ["a limit of memory", { memoryBytes: 1 << 30 }],
  ["a limit of processors", { cpus: 1 }],
])("%s is refused by name, and nothing is started", async (what, wanted) => {
  const lease = { id: what, generation: 1, deadlineMs: Date.now() + 60_000 };
  await expect(provider.create({ ...SPEC, ...wanted }, lease)).rejects.toMatchObject({
    name: "InputError",
    message: expect.stringContaining(`cannot give a sandbox ${what}`),
  });
});
