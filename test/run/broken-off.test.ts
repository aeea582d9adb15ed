// Aborted episodes, whether another episode of their shard failed or the driver was told to stop: they count as not begun,
// nothing of them goes on, and a driver that plays the shard again has all their attempts.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createReplay } from "../../src/agent/replay.ts";
import { parseRunConfig } from "../../src/config/parse-config.ts";
import { Failure, InputError } from "../../src/failure/errors.ts";
import { openText } from "../../src/rollout/episode-text.ts";
import { imageServices } from "../../src/rollout/image-services.ts";
import { planIteration } from "../../src/rollout/plan.ts";
import { playShard } from "../../src/rollout/play-shard.ts";
import { iterationPrefix, policyPrefix } from "../../src/run/keys.ts";
import { EpisodeRecord } from "../../src/run/records.ts";
import { describeSoftware } from "../../src/run/run-record.ts";
import { startRun } from "../../src/run/start-run.ts";
import type { GenerateRequest, Generation, Sampler } from "../../src/sampler/sampler.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { readJson } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { computeReceipt } from "../../src/trajectory/receipt.ts";
import { allocateRoutes } from "../../src/trajectory/routes.ts";
import { listProcesses } from "../sandbox/processes.ts";
import { makeTinyRun, type TinyRun } from "./tiny-run.ts";

const MARK = "876543";
const EPISODES = [0, 1, 2, 3];

let tiny: TinyRun;
let provider: BubblewrapProvider;
let folder: string;
let store: ObjectStore;
beforeAll(async () => {
  tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout:\n  episodes: 4\n  attempts: 1\n" });
  provider = createBubblewrapProvider();
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  rmSync(tiny.folder, { recursive: true });
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "t1-broken-off-"));
  store = await openStore(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

const phase = iterationPrefix("r", 0);
const config = (pool = tiny.pool) =>
  parseRunConfig(readFileSync(tiny.config, "utf8"), tiny.config, [`tasks.pool=${pool}`]);
const sleeping = () => listProcesses().filter(({ words }) => words.includes(MARK)).length;

async function plan(pool?: string): Promise<void> {
  await startRun(
    {
      ...{ run: "r", config: config(pool), configFile: tiny.config },
      ...{ software: describeSoftware({}), createdAt: new Date(0) },
    },
    { store },
  );
  await planIteration({ run: "r", iteration: 0 }, { store });
}

/** Plays all episodes, with this command as each answer. @param generate may do something else before it */
async function play(
  command: string,
  generate: (answer: () => Promise<Generation>) => Promise<Generation>,
  interruption?: AbortSignal,
): Promise<void> {
  const policy = { version: 0, prefix: policyPrefix("r", 0) };
  const { chat, tokenizer, layout } = await openText(store, policy, config());
  const answer = async (request: GenerateRequest): Promise<Generation> => {
    const { tokens: prompt, routesHeld } = request;
    const given = await createReplay([command], chat, tokenizer).generate(request);
    if (layout === undefined) throw new Error("a model with experts");
    const routes = allocateRoutes(prompt.length + given.tokens.length - 1 - routesHeld, layout);
    return { ...given, routes, receipt: computeReceipt({ ...given, prompt, sampled: given.tokens, routes }) };
  };
  const sampler: Sampler = {
    generate: request => generate(() => answer(request)),
    [Symbol.asyncDispose]: async () => undefined,
  };
  await playShard(
    { phase, episodes: EPISODES, policyVersion: 0, workFolder: folder },
    {
      ...{ store, sandboxes: provider, images: imageServices(undefined, provider), sampler },
      holder: { name: "test" },
      ...(interruption !== undefined && { interruption }),
    },
  );
}

async function recorded(): Promise<readonly EpisodeRecord[]> {
  const keys = (await Array.fromAsync(store.list(phase))).map(({ key }) => key);
  const records = keys.filter(key => key.endsWith("/episode.json"));
  return Promise.all(records.map(key => readJson(store, key, EpisodeRecord)));
}

/** Plays until something sleeps in every episode, and ends the driver then. */
async function playUntilStopped(command: string): Promise<void> {
  const stop = new AbortController();
  const played = play(command, answer => answer(), stop.signal);
  const ended = expect(played).rejects.toMatchObject({ name: "DriverLost" });
  await expect.poll(sleeping, { timeout: 10_000 }).toBe(EPISODES.length);
  stop.abort(new Failure("DriverLost", "its task was stopped", { retryable: false }));
  await ended;
  expect(sleeping()).toBe(0);
  expect(await recorded()).toEqual([]);
}

test("an error of one episode breaks off the others, and none of them is recorded", async () => {
  await plan();
  let asked = 0;
  const played = play(`sleep ${MARK}`, async answer => {
    asked += 1;
    if (asked < EPISODES.length) return answer();
    await expect.poll(sleeping, { timeout: 10_000 }).toBe(EPISODES.length - 1);
    throw new InputError("corrupt checkpoint");
  });
  await expect(played).rejects.toThrow("corrupt checkpoint");
  expect(sleeping()).toBe(0);
  expect(await recorded()).toEqual([]);
});

test("whoever ends a driver breaks off its episodes, which another driver plays as if none had been begun", async () => {
  await plan();
  await playUntilStopped(`sleep ${MARK}`);
  await play("true", answer => answer());
  const records = await recorded();
  expect(records.map(({ failure }) => failure)).toEqual(EPISODES.map(() => undefined));
});

test("episodes that are being graded are broken off as well", { timeout: 20_000 }, async () => {
  const pool = join(folder, "pool");
  cpSync(tiny.pool, pool, { recursive: true });
  for (const task of readdirSync(pool)) writeFileSync(join(pool, task, "tests/test.sh"), `sleep ${MARK}\n`);
  await plan(pool);
  await playUntilStopped("true");
});
