import { expect, test } from "vitest";
import type { SandboxSpec } from "../sandbox.ts";
import { taskSize } from "./task-size.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const spec: SandboxSpec = {
  image: { kind: "host", files: [] },
  ...{ workdir: "/app", env: {}, network: "none", diskBytes: GIB },
};

// Sizes that Fargate has: AWS's table of task CPU and memory.
test.each<[string, Partial<SandboxSpec>, object]>([
  ["nothing asked for: the definition's", {}, {}],
  ["a processor", { cpus: 1 }, { cpu: "1024", memory: "2048" }],
  ["a part of one", { cpus: 0.2 }, { cpu: "256", memory: "1024" }],
  [
    "8,192 MiB for the agent, and room for the verifier's daemon",
    { memoryBytes: 8192 * MIB },
    { cpu: "2048", memory: "9216" },
  ],
  ["more processors than memory needs", { cpus: 4, memoryBytes: GIB }, { cpu: "4096", memory: "8192" }],
  ["steps of 4 GiB", { cpus: 8, memoryBytes: 17 * GIB }, { cpu: "8192", memory: "20480" }],
  ["steps of 8 GiB", { cpus: 16, memoryBytes: 33 * GIB }, { cpu: "16384", memory: "40960" }],
  ["a larger disk", { diskBytes: 30 * GIB }, { ephemeralStorage: { sizeInGiB: 38 } }],
])("%s", (_, change, expected) => {
  expect(taskSize({ ...spec, ...change })).toEqual(expected);
});

test.each<[string, Partial<SandboxSpec>]>([
  ["processors", { cpus: 17 }],
  ["memory", { memoryBytes: 120 * GIB }],
  ["disk", { diskBytes: 193 * GIB }],
])("more %s than Fargate has is refused by name", (_, change) => {
  expect(() => taskSize({ ...spec, ...change })).toThrow(expect.objectContaining({ name: "InputError" }));
});
