// Training on an episode of several chunks: each chunk is trained under the episode's reward, and one that is not
// to be trained never reaches it.
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/files/sha256.ts";
import { loadBatch } from "../../src/learning/load-batch.ts";
import { type Model, readModel } from "../../src/model/checkpoint.ts";
import { openLocalModel } from "../../src/model/model-folder.ts";
import { criticFromActor } from "../../src/model/parameters.ts";
import { routeLayout } from "../../src/model/routing.ts";
import { arraysKey, attemptPrefix, episodePrefix, iterationPrefix } from "../../src/run/keys.ts";
import type { ClosedPhase } from "../../src/run/records.ts";
import { openFileStore } from "../../src/store/file-store.ts";
import { putOnce } from "../../src/store/write-once.ts";
import type { PolicyMethod } from "../../src/training/algorithms/algorithm.ts";
import { ppo } from "../../src/training/algorithms/ppo.ts";
import { type TrainingEpisode, type Truncation, toBatch } from "../../src/training/batch.ts";
import { Network, Sessions } from "../../src/training/onnx/network.ts";
import { trainPolicy } from "../../src/training/onnx/train-policy.ts";
import { type Chunk, encodeChunks } from "../../src/trajectory/chunk.ts";
import { computeReceipt } from "../../src/trajectory/receipt.ts";
import { allocateRoutes, type RouteLayout } from "../../src/trajectory/routes.ts";
import { TokenStream } from "../../src/trajectory/stream.ts";
import { temporaryFolder } from "../store/temporary-store.ts";

const FOLDER = new URL("../fixtures/qwen3moe/replay_norm/", import.meta.url);
const { config } = await freshModel();

function layoutOfModel(): RouteLayout {
  const layout = routeLayout(config);
  if (layout === undefined) throw new Error("a model with experts");
  return layout;
}

/** Training changes the arrays in place. */
async function freshModel(): Promise<Model> {
  return readModel(await openLocalModel(fileURLToPath(FOLDER)), "language");
}

function answer(
  stream: TokenStream,
  given: readonly number[],
  sampled: readonly number[],
  layout: RouteLayout,
) {
  stream.appendGiven(given);
  const prompt = stream.tokens();
  const tokens = Int32Array.from(sampled);
  const logProbs = Float32Array.from(sampled, () => -3);
  const routes = allocateRoutes(prompt.length + tokens.length - 1 - stream.routesHeld, layout);
  const k = layout.expertsPerToken;
  routes.ids.forEach((_, at) => {
    routes.ids[at] = (Math.floor(at / k) + (at % k)) % layout.expertCount;
  });
  const receipt = computeReceipt({ prompt, sampled: tokens, logProbs, routes, policyVersion: 0 });
  stream.appendSampled({ tokens, logProbs, routes, policyVersion: 0, receipt });
}

/** A conversation, and a fork of it that goes on elsewhere: as a summary does. */
function twoChunks(layout: RouteLayout): [Chunk, Chunk] {
  const work = new TokenStream();
  answer(work, [3, 5, 7], [9, 11], layout);
  answer(work, [13], [15, 17, 19], layout);
  const fork = work.fork(1);
  answer(fork, [21, 23], [25], layout);
  return [work.finish(layout), fork.finish(layout)];
}

async function train(episodes: readonly TrainingEpisode[], truncation: Truncation) {
  const model = await freshModel();
  const fresh = { moments: new Map(), step: 0 };
  const actor = new Network({ ...model, ...fresh });
  const critic = new Network({
    config: model.config,
    parameters: criticFromActor(model.config, model.parameters),
    ...fresh,
  });
  const sessions = new Sessions({ threads: 1 });
  const method = ppo.method({
    iterations: 1,
    lossMean: "token",
    truncation,
    actor: { learningRate: 1e-3, weightDecay: 0 },
    critic: { learningRate: 1e-3, weightDecay: 0, onlyIterations: 0 },
  }) as PolicyMethod;
  try {
    const metrics = await trainPolicy(
      toBatch(episodes),
      { actor, critic },
      {
        ...{ method, iteration: 0, temperature: 1, sessions, seed: "s" },
      },
    );
    return { metrics, actor: actor.state.parameters, critic: critic.state.parameters };
  } finally {
    await sessions[Symbol.asyncDispose]();
  }
}

describe("an episode of several chunks", () => {
  it.each<Truncation>(["terminal", "zero"])(
    "is trained like an episode for each, when every token weighs the same (%s)",
    { timeout: 120_000 },
    async truncation => {
      const [work, fork] = twoChunks(layoutOfModel());
      const episode = (id: string, chunks: readonly Chunk[]): TrainingEpisode => ({
        id,
        task: "t",
        chunks,
        endReason: "context_limit",
        reward: 0.5,
      });
      const together = await train([episode("0", [work, fork])], truncation);
      const apart = await train([episode("0", [work]), episode("1", [fork])], truncation);
      expect(together.metrics["batch.tokens"]).toBe(6);
      for (const part of ["actor", "critic"] as const) {
        for (const [name, { data }] of together[part]) {
          const other = apart[part].get(name)?.data ?? new Float32Array();
          const gap = data.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at])), 0);
          expect(gap, `${part} ${name}`).toBeLessThan(1e-6);
        }
      }
    },
  );

  it("loses the chunks that are not to be trained when it is loaded", async () => {
    const layout: RouteLayout = { layerCount: 1, expertsPerToken: 1, expertCount: 4 };
    const [work, fork] = twoChunks(layout);
    const store = await openFileStore(await temporaryFolder());
    const phase = iterationPrefix("r", 0);
    const entries: ClosedPhase["episodes"] = [];
    for (const [episode, chunks] of [
      [work, { ...fork, untrained: true as const }],
      [{ ...work, untrained: true as const }],
    ].entries()) {
      const bytes = encodeChunks(chunks, layout);
      await putOnce(store, arraysKey(attemptPrefix(episodePrefix(phase, episode), 1)), bytes);
      entries.push({
        episode,
        attempt: 1,
        endReason: "completed",
        reward: 1,
        resolved: true,
        passed: 1,
        total: 1,
        turnCount: 2,
        tokenCount: 9,
        sampledTokenCount: 5,
        task: "t",
        labels: {},
        arraysSha256: sha256(bytes),
        recordSha256: sha256(bytes),
      });
    }
    const closed: ClosedPhase = {
      format: "t1-closed-1",
      policyVersion: 0,
      rewardConfig: { kind: "dense", scale: 20 },
      episodes: entries,
      failed: [],
      cancelled: [],
    };
    const { episodes } = await loadBatch(store, phase, closed);
    expect(episodes.map(({ id, chunks }) => [id, chunks])).toEqual([["0", [work]]]);
  });
});
