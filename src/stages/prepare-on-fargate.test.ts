import { expect, it } from "vitest";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { prepareImages } from "./prepare-on-fargate.ts";

type Sources = Parameters<typeof prepareImages>[0];
type Services = Parameters<typeof prepareImages>[1];

/** ECS as far as registrations go: a burst of 20, then one a second, and no two at once in one family. */
function registrar(startTokens = 20) {
  let tokens = startTokens;
  const calls: string[] = [];
  const open = new Set<string>();
  return {
    calls,
    refill: () => tokens++,
    register: async (hash: string): Promise<string> => {
      if (tokens <= 0) throw new Error("ThrottlingException");
      if (open.has(hash)) throw new Error("too many concurrent attempts");
      tokens--;
      open.add(hash);
      await new Promise(resolve => setImmediate(resolve));
      open.delete(hash);
      calls.push(hash);
      return `arn:${hash}`;
    },
  };
}

const hashes = Array.from({ length: 20 }, (_, index) => `${index}`.padStart(64, "a"));
const sources: Sources = Array.from({ length: 200 }, (_, episode) => ({
  hash: hashes[episode % 20],
  task: `task-${episode}`,
  context: async () => new Uint8Array([1]),
}));

async function services(change: Partial<Services> = {}) {
  const store = await temporaryStore();
  const ecs = registrar();
  const built = new Map<string, "running" | "succeeded" | "failed">();
  const starts: string[] = [];
  const all: Services = {
    store,
    startBuild: async ({ hash }) => {
      starts.push(hash);
      built.set(`build-${hash}`, "running");
      return `build-${hash}`;
    },
    buildStatus: async id => built.get(id) ?? "failed",
    register: ecs.register,
    toolkitImage: "toolkit:main",
    wakeSampler: async () => true,
    signal: new AbortController().signal,
    registerPauseMs: 0,
    ...change,
  };
  const finish = async (status: "succeeded" | "failed") => {
    for (const id of built.keys()) built.set(id, status);
    const config = Buffer.from(JSON.stringify({ Env: ["PATH=/opt/bin"], Entrypoint: ["/init.sh"] }));
    for (const hash of starts) await store.put(`builds/${hash}.config.json`, config, { ifNoneMatch: "*" });
  };
  return { all, ecs, starts, finish };
}

it("B17: 200 episodes over 20 images make 20 builds and 20 registrations, once and for all", async () => {
  const { all, ecs, starts, finish } = await services();
  expect(await prepareImages(sources, all)).toEqual({ waiting: 20, registered: 0 });
  expect(await prepareImages(sources, all)).toEqual({ waiting: 20, registered: 0 });
  await finish("succeeded");
  expect(await prepareImages(sources, all)).toEqual({ waiting: 0, registered: 20 });
  expect(await prepareImages(sources, all)).toEqual({ waiting: 0, registered: 0 });
  expect(starts.sort()).toEqual([...hashes].sort());
  expect(ecs.calls.sort()).toEqual([...hashes].sort());
});

it("goes on after a throttled registration with what is missing", async () => {
  const few = registrar(5);
  const { all, finish } = await services({ register: few.register });
  await prepareImages(sources, all);
  await finish("succeeded");
  await expect(prepareImages(sources, all)).rejects.toThrow("ThrottlingException");
  for (let count = 0; count < 15; count++) few.refill();
  expect(await prepareImages(sources, all)).toEqual({ waiting: 0, registered: 15 });
  expect(new Set(few.calls).size).toBe(20);
});

it("a failed build names the task, and is started anew by the next try", async () => {
  const { all, starts, finish } = await services();
  const [source] = sources;
  await prepareImages([source], all);
  await finish("failed");
  await expect(prepareImages([source], all)).rejects.toMatchObject({
    name: "InputError",
    message: expect.stringContaining("task-0"),
  });
  expect(await prepareImages([source], all)).toEqual({ waiting: 1, registered: 0 });
  expect(starts).toEqual([source.hash, source.hash]);
});
