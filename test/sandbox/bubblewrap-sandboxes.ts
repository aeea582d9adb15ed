// Bubblewrap sandboxes for the tests of one file, and the processes around them.
import { afterAll, afterEach, beforeAll } from "vitest";
import type { BubblewrapSandbox } from "../../src/sandbox/bubblewrap/bubblewrap-sandbox.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import type { ExecOptions, ExecResult, Lease, SandboxSpec } from "../../src/sandbox/sandbox.ts";
import { onlyChild, SPAWNER } from "./processes.ts";

/** This machine's programs, and nothing else. */
export function hostSpec(diskBytes: number): SandboxSpec {
  return { image: { kind: "host", files: [] }, workdir: "/app", env: {}, network: "none", diskBytes };
}

export function run(
  sandbox: BubblewrapSandbox,
  command: string,
  options: Partial<ExecOptions> = {},
): Promise<ExecResult> {
  return sandbox.exec(command, { timeoutMs: 20_000, ...options });
}

export function spawnerHere(): number {
  return onlyChild(process.pid, SPAWNER);
}

/** Of the one sandbox that there is. */
export function entryProcessHere(): number {
  return onlyChild(spawnerHere(), SPAWNER);
}

export interface BubblewrapSandboxes {
  create(): Promise<BubblewrapSandbox>;
  /** Another with each call. */
  lease(): Lease;
  /** Also done after each test. */
  endAll(): Promise<void>;
}

/** From one provider, which ends after the last test. */
export function bubblewrapSandboxes(name: string, spec: SandboxSpec): BubblewrapSandboxes {
  let provider: BubblewrapProvider;
  const made: BubblewrapSandbox[] = [];
  let count = 0;
  const lease = () => ({ id: `${name}/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 });
  const endAll = async () => {
    await Promise.all(made.splice(0).map(sandbox => sandbox[Symbol.asyncDispose]()));
  };
  beforeAll(() => {
    provider = createBubblewrapProvider();
  });
  afterEach(endAll);
  afterAll(() => provider[Symbol.asyncDispose]());
  return {
    lease,
    endAll,
    create: async () => {
      const sandbox = await provider.create(spec, lease());
      made.push(sandbox);
      return sandbox;
    },
  };
}
