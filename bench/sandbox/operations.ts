// Times the other operations of a grading, one at a time: kill, put files in, take them out, list the changes, carry them
// into a clean sandbox.
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { timeMs } from "./measure.ts";

const SPEC = {
  image: { kind: "host", files: [] },
  workdir: "/app",
  env: {},
  network: "none",
  diskBytes: 64 << 20,
} as const;

/** @returns times in ms by operation */
export async function timeOperations(rounds: number): Promise<ReadonlyMap<string, readonly number[]>> {
  const provider = createBubblewrapProvider();
  let count = 0;
  const lease = () => ({
    id: `operations/${count++}`,
    generation: 1,
    deadlineMs: Date.now() + 600_000,
  });
  const folder = new Uint8Array(1024); // an archive without entries
  const times = new Map<string, number[]>();
  const time = async (name: string, action: () => Promise<unknown>): Promise<void> => {
    const list = times.get(name) ?? [];
    times.set(name, list);
    list.push(await timeMs(action));
  };
  for (let round = 0; round < rounds; round++) {
    const sandbox = await provider.create(SPEC, lease());
    await sandbox.exec("echo x > f; sleep 60 &", { timeoutMs: 60_000 });
    await time("kill all that runs", () => sandbox.killAgents());
    await time("put a folder in", () => sandbox.upload(folder, "/tests"));
    await time("take a folder out", () => sandbox.download("/tests", 1 << 20));
    let next: Sandbox | { refused: string } | undefined;
    await time("list what was changed", () => sandbox.changedFiles());
    await time("carry it into a clean one", async () => {
      next = await sandbox.successor(lease(), { without: ["/tests", "/logs/verifier"] });
    });
    await time("end", async () => sandbox[Symbol.asyncDispose]());
    if (next !== undefined && !("refused" in next)) await next[Symbol.asyncDispose]();
  }
  await provider[Symbol.asyncDispose]();
  return times;
}
