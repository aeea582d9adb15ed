// The driver's program as ECS starts it, with sandboxes that are tasks: images as the prepare stage registers them, a
// Spot interruption in the middle, and nothing left running when it has ended.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parseRunConfig } from "../../src/config/parse-config.ts";
import { sandboxTaskDefinition } from "../../src/planning/sandbox-task.ts";
import { planIteration } from "../../src/rollout/plan.ts";
import { iterationPrefix } from "../../src/run/keys.ts";
import { EpisodeRecord } from "../../src/run/records.ts";
import { describeSoftware } from "../../src/run/run-record.ts";
import { startRun } from "../../src/run/start-run.ts";
import { storePool } from "../../src/run/stored-pool.ts";
import { imageSourceHash } from "../../src/sandbox/fargate/prepared-images.ts";
import { prepareImages } from "../../src/stages/prepare-on-fargate.ts";
import { readJson } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { makeTinyRun } from "../run/tiny-run.ts";
import { EcsFake } from "../sandbox/ecs/ecs-fake.ts";
import type { TaskDefinition } from "../sandbox/ecs/ecs-task.ts";
import { makeRootFolder } from "../sandbox/root-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const TOOLKIT_IMAGE = "registry/t1/sandbox-toolkit:main";
const EPISODES = 6;

/** Prepares images as CodeBuild and the prepare stage do, with a folder in place of each image. */
async function prepareTasks(
  pool: string,
  { store, ecs }: { store: ObjectStore; ecs: EcsFake },
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "t1-images-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const contexts = new Map<string, string>();
  const sources: Parameters<typeof prepareImages>[0][number][] = [];
  for (const task of readdirSync(pool).filter(name => name.startsWith("task-"))) {
    const context = join(pool, task, "environment");
    const source = { kind: "dockerfile", dockerfile: join(context, "Dockerfile"), context } as const;
    const hash = await imageSourceHash(source);
    contexts.set(hash, context);
    sources.push({ hash, task, context: async () => new Uint8Array(1) });
  }
  const services = {
    store,
    registerPauseMs: 0,
    toolkitImage: TOOLKIT_IMAGE,
    wakeSampler: async () => true,
    signal: new AbortController().signal,
    startBuild: async ({ hash, configKey }: { hash: string; configKey: string }) => {
      const root = join(folder, hash);
      makeRootFolder(root, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 });
      mkdirSync(join(root, "app"));
      const files = join(contexts.get(hash) ?? "", "files");
      if (existsSync(files)) cpSync(files, join(root, "app"), { recursive: true });
      ecs.addImage(`registry/t1/tasks:${hash}`, root);
      const config = { Env: ["PATH=/usr/bin:/bin"], WorkingDir: "/app" };
      await store.put(configKey, JSON.stringify(config), { ifNoneMatch: "*" });
      return hash;
    },
    buildStatus: async () => "succeeded" as const,
    register: async (hash: string) =>
      ecs.register(
        sandboxTaskDefinition({
          ...{ family: `t1-sandbox-${hash.slice(0, 32)}`, image: `registry/t1/tasks:${hash}` },
          ...{ toolkitImage: TOOLKIT_IMAGE, cpu: 1024, memoryMiB: 2048, diskGiB: 21 },
          ...{ executionRoleArn: "arn:aws:iam::1:role/pull", environment: {} },
        }) as TaskDefinition,
      ),
  };
  await prepareImages(sources, services);
  expect(await prepareImages(sources, services)).toEqual({ waiting: 0, registered: contexts.size });
}

/** The metadata endpoint that ECS gives every container: it names the driver's task. */
async function metadata(taskArn: string): Promise<string> {
  const server = createServer((_, response) => response.end(JSON.stringify({ TaskARN: taskArn })));
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("a driver plays its shard in tasks of its own, again what Spot interrupts, and leaves none", async () => {
  const tiny = await makeTinyRun({
    tasks: 3,
    settings: `rollout:\n  episodes: ${EPISODES}\n  concurrency: 3\n`,
  });
  onTestFinished(() => rmSync(tiny.folder, { recursive: true, force: true }));
  const store = await openStore(tiny.store);
  const ecs = await EcsFake.open({ cluster: "t1" });
  onTestFinished(() => ecs[Symbol.asyncDispose]());
  await storePool({ folder: tiny.pool, name: "tiny" }, { store });
  const text = (await readFile(tiny.config, "utf8")).replace("pool: pool", "pool: store:tiny");
  const config = parseRunConfig(text, tiny.config);
  const software = describeSoftware({});
  await startRun({ run: "r", config, configFile: tiny.config, software, createdAt: new Date(0) }, { store });
  await planIteration({ run: "r", iteration: 0 }, { store });
  await prepareTasks(tiny.pool, { store, ecs });

  const driver = ecs.addTask("t1-driver:1");
  const phase = iterationPrefix("r", 0);
  const child = spawn(process.execPath, [join(ROOT, "containers/driver/main.ts")], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      ...{ T1_STORE_URL: tiny.store, T1_PHASE: phase, T1_POLICY_VERSION: "0", T1_THREADS: "1" },
      T1_EPISODES: Array.from({ length: EPISODES }, (_, episode) => episode).join(","),
      ...{ T1_SANDBOXES: "fargate", T1_CLUSTER: "t1", T1_SANDBOX_FAMILIES: "t1-sandbox-" },
      ...{
        T1_SANDBOX_SUBNETS: "subnet-1,subnet-2",
        T1_SANDBOX_GROUP: "sg-1",
        T1_TOOLKIT_IMAGE: TOOLKIT_IMAGE,
      },
      ...{ T1_SANDBOX_MARKET: "spot-first", T1_MARKET: "FARGATE_SPOT" },
      ...{ AWS_ENDPOINT_URL_ECS: ecs.url, ECS_CONTAINER_METADATA_URI_V4: await metadata(driver) },
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", piece => {
      output += piece;
    });
  const ended = new Promise<number | null>(resolve => child.once("close", resolve));

  const sandboxes = () =>
    ecs.livingArns.filter(arn => arn !== driver && ecs.statusOf(arn).lastStatus === "RUNNING");
  await expect.poll(() => sandboxes().length, { timeout: 120_000, interval: 50 }).toBeGreaterThan(0);
  const [interrupted = ""] = sandboxes();
  await ecs.stop(interrupted, {
    stopCode: "SpotInterruption",
    stoppedReason: "Your Spot Task was interrupted.",
  });

  expect([await ended, output]).toEqual([0, expect.stringContaining('"episode":')]);
  const records: EpisodeRecord[] = [];
  for await (const { key } of store.list(phase))
    if (key.endsWith("/episode.json")) records.push(await readJson(store, key, EpisodeRecord));
  const finished = records.filter(({ failure }) => failure === undefined);
  expect(new Set(finished.map(({ episode }) => episode)).size).toBe(EPISODES);
  // If the driver had not seen the sandbox run yet, its loss is no failed attempt.
  const lost = records.flatMap(({ failure }) => failure?.name ?? []);
  expect([[], ["SandboxLost"]]).toContainEqual(lost);
  expect(finished.every(({ report }) => report !== undefined)).toBe(true);
  await expect.poll(() => ecs.livingArns, { timeout: 30_000 }).toEqual([driver]);

  const requests = ecs.requests.filter(({ overrides }) => overrides !== undefined);
  const markets = requests.map(
    ({ capacityProviderStrategy }) => capacityProviderStrategy?.[0]?.capacityProvider,
  );
  expect(markets.filter(market => market === "FARGATE")).toHaveLength(1); // the second try of the interrupted one
  const tagsOf = (key: string) =>
    new Set(requests.map(({ tags }) => tags?.find(tag => tag.key === key)?.value));
  expect([tagsOf("t1:run"), tagsOf("t1:driver")]).toEqual([new Set(["r"]), new Set([driver])]);
});
