// What a phase is closed with when the infrastructure failed for many of its episodes.
import { describe, expect, it } from "vitest";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { sha256 } from "../files/sha256.ts";
import { loadBatch } from "../learning/load-batch.ts";
import {
  arraysKey,
  attemptPrefix,
  closedKey,
  episodeKey,
  episodePrefix,
  iterationPrefix,
  planKey,
} from "../run/keys.ts";
import type { EpisodeRecord, PlannedEpisode } from "../run/records.ts";
import { minimumEpisodes } from "../stages/close.ts";
import { encodeJson, encodeJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { type Chunk, encodeChunks } from "../trajectory/chunk.ts";
import { allocateRoutes } from "../trajectory/routes.ts";
import { close } from "./close.ts";
import { score } from "./score.ts";

const PHASE = iterationPrefix("r", 0);
const REWARD = { kind: "binary", scale: 20 } as const;
const HASH = "0".repeat(64);
const EPISODES = 10;

/** A store in which the first episodes were solved, and the infrastructure failed for the rest. */
async function played(solved: number): Promise<ObjectStore> {
  const store = await temporaryStore();
  const plan = Array.from(
    { length: EPISODES },
    (_, episode): PlannedEpisode => ({ episode, task: "t", taskHash: HASH, repeat: 0, seed: "s" }),
  );
  await putOnce(store, planKey(PHASE), encodeJsonLines(plan));
  for (const { episode } of plan) {
    const at = attemptPrefix(episodePrefix(PHASE, episode), 1);
    const arrays = encodeChunks([chunkOf(episode)], { layerCount: 1, expertsPerToken: 1, expertCount: 2 });
    // Also a failed attempt may have left what it sampled.
    await putOnce(store, arraysKey(at), arrays);
    const common = {
      format: "t1-episode-1",
      ...{ episode, attempt: 1, task: "t", taskHash: HASH, labels: {} },
      ...{ policyVersion: 0, turnCount: 1, tokenCount: 4, sampledTokenCount: 2 },
      startedAt: new Date(0).toISOString(),
      times: { sandboxStartMs: 0, samplerMs: 0, commandMs: 0, verifierMs: 0, totalMs: 0 },
    } as const satisfies Partial<EpisodeRecord>;
    const failure = { layer: "runner", name: "DriverLost", retryable: true, detail: "gone" } as const;
    const tests = [{ name: "a", status: "passed" as const }];
    const report = { outcome: 1, tests, exitCode: 0, durationMs: 1 };
    const record: EpisodeRecord =
      episode < solved
        ? { ...common, endReason: "completed", report, arraysSha256: sha256(arrays) }
        : { ...common, endReason: "failure", failure };
    await putOnce(store, episodeKey(at), encodeJson(record));
  }
  await score({ phase: PHASE, plan, rewardConfig: REWARD }, { store });
  return store;
}

function chunkOf(episode: number): Chunk {
  return {
    tokens: Int32Array.from([episode, 1, 2, 3]),
    mask: Uint8Array.from([0, 0, 1, 1]),
    logProbs: Float32Array.from([0, 0, -1, -1]),
    routes: allocateRoutes(3, { layerCount: 1, expertsPerToken: 1, expertCount: 2 }),
    turns: [],
  };
}

const closing = (store: ObjectStore) =>
  close(
    {
      ...{ phase: PHASE, policyVersion: 0, rewardConfig: REWARD },
      minimum: minimumEpisodes({ rollout: { episodes: EPISODES } } as Parameters<typeof minimumEpisodes>[0]),
    },
    { store },
  );

describe("a phase in which the infrastructure failed", () => {
  it("B59: for nine episodes of ten is not closed, and can be played on", async () => {
    const store = await played(1);
    await expect(closing(store)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/failed too often[\s\S]*at least 5 [\s\S]*got 1; 9 failed/),
    });
    expect(await store.head(closedKey(PHASE))).toBeUndefined();
  });

  it("B59: for some is closed without a reward of theirs: they are failures, and not zeros", async () => {
    const closed = await closing(await played(6));
    expect(closed.episodes.map(({ episode, reward }) => [episode, reward])).toEqual(
      [0, 1, 2, 3, 4, 5].map(episode => [episode, 1]),
    );
    expect(closed.failed.map(({ episode, failure }) => [episode, failure.name])).toEqual(
      [6, 7, 8, 9].map(episode => [episode, "DriverLost"]),
    );
  });

  it("B61: hands training the episodes that count and no other, whatever a failed one has left", async () => {
    const store = await played(6);
    const { episodes } = await loadBatch(store, PHASE, await closing(store));
    expect(episodes.map(({ id, reward, chunks }) => [id, reward, chunks[0]?.tokens[0]])).toEqual(
      [0, 1, 2, 3, 4, 5].map(episode => [`${episode}`, 1, episode]),
    );
  });
});
