// GRPO and GSPO against golden numbers from PyTorch in float64 (test/fixtures/algorithms): advantages of groups, and the
// loss with its gradient through the graph that trains.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeSafetensors } from "../../safetensors/format.ts";
import { tensorArray, tensorFloats } from "../../safetensors/numbers.ts";
import { gradients } from "../../tensor/backward.ts";
import { Graph } from "../../tensor/graph.ts";
import { matmul } from "../../tensor/linear.ts";
import { Session } from "../../tensor/session.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import type { PolicyMethod } from "../algorithms/algorithm.ts";
import { grpo } from "../algorithms/grpo.ts";
import { gspo } from "../algorithms/gspo.ts";
import { type TrainingEpisode, toBatch } from "../batch.ts";
import { type LossMean, lossWeights } from "../loss-weights.ts";
import { clippedPolicyLoss, scoreTokens } from "./losses.ts";
import { chunkFeeds, gatherRows, type MicroBatch, microBatches } from "./micro-batch.ts";
import { movement } from "./train-policy.ts";

const PATH = `${import.meta.dirname}/../../../test/fixtures/algorithms/expected.safetensors`;
const golden = decodeSafetensors(readFileSync(PATH), PATH);
const f = (name: string): Float32Array => tensorFloats(golden, name).data;
const integers = (name: string): number[] => [...tensorArray(golden, name, "I32").data];

const offsets = integers("chunk_offsets");
const owners = integers("chunk_episode");
const tasks = integers("episode_task");
const perChunk = (rows: Float32Array): Float32Array[] =>
  owners.map((_, chunk) => rows.slice(offsets[chunk], offsets[chunk + 1]));
const tokens = Int32Array.from(integers("tokens"));
const chunks = owners.map(
  (_, chunk): Chunk => ({
    tokens: tokens.slice(offsets[chunk], offsets[chunk + 1]),
    mask: Uint8Array.from(perChunk(f("mask"))[chunk]),
    logProbs: perChunk(f("logp_old"))[chunk],
    turns: [],
  }),
);
const batch = toBatch(
  tasks.map(
    (task, episode): TrainingEpisode => ({
      id: `${episode}`,
      task: `${task}`,
      chunks: chunks.filter((_, chunk) => owners[chunk] === episode),
      endReason: "completed",
      reward: f("reward")[episode],
    }),
  ),
);

const settings = (actor: Record<string, number>, more: Record<string, unknown> = {}) => ({
  iterations: 1,
  groupSize: 4,
  actor,
  ...more,
});
const METHODS = {
  grpo: grpo.method(settings({ clipLow: 0.2, clipHigh: 0.2 })),
  gspo: gspo.method(settings({ clipLow: 0.05, clipHigh: 0.08 })),
} as Readonly<Record<"grpo" | "gspo", PolicyMethod>>;

const close = (found: ArrayLike<number>, wanted: ArrayLike<number>, tolerance = 2e-6): void => {
  expect(found.length).toBe(wanted.length);
  for (let i = 0; i < wanted.length; i++)
    expect(Math.abs(found[i] - wanted[i]), `element ${i}`).toBeLessThan(tolerance);
};

/** Loss and gradient, the parts one after another. Row t of a chunk is here the one that scores token t. */
async function lossOf({ surrogate, advantages }: PolicyMethod, mean: LossMean, parts: readonly MicroBatch[]) {
  const graph = new Graph();
  const [X, W] = [graph.input("X", ["M", 6]), graph.parameter("W", [6, 11])];
  const column = (name: string) => graph.input(name, ["M", 1]);
  const { logProbs } = scoreTokens(matmul(X, W), graph.input("targets", ["M", 1], "i32"));
  const loss = clippedPolicyLoss(
    { logProbs, oldLogProbs: column("old"), advantages: column("advantages"), weights: column("weights") },
    surrogate,
    () => ({
      means: graph.input("chunk.means", ["S", "M"]),
      members: graph.input("chunk.members", ["M", "S"]),
    }),
  );
  graph.output("loss", loss);
  graph.output("W", gradients(loss, [W])[0]);
  await using session = await Session.open(graph, { threads: 1 });
  const weights = lossWeights(
    chunks.map(({ mask }) => mask),
    owners,
    mean,
  );
  const total = { loss: 0, gradient: new Float32Array(66) };
  for (const part of parts) {
    const X = part.places.flatMap(({ chunk, token }) => {
      const row = offsets[chunk] + token;
      return [...f("X").subarray(row * 6, row * 6 + 6)];
    });
    const out = await session.run({
      X: { data: Float32Array.from(X), shape: [part.places.length, 6] },
      W: { data: f("W"), shape: [6, 11] },
      targets: { data: part.targets, shape: [part.targets.length, 1] },
      old: gatherRows(part, perChunk(f("logp_old"))),
      advantages: gatherRows(part, advantages(batch).advantages),
      weights: gatherRows(part, weights),
      ...(surrogate.ratio === "sequence" && chunkFeeds(part)),
    });
    total.loss += out.f32("loss").data[0];
    out.f32("W").data.forEach((value, at) => {
      total.gradient[at] += value;
    });
  }
  return total;
}

/** The chunks `indices` as a micro-batch of their own. */
function partOf(indices: readonly number[]): MicroBatch[] {
  return microBatches(indices.map(index => chunks[index])).map(part => ({
    ...part,
    chunkIndices: part.chunkIndices.map(index => indices[index]),
    places: part.places.map(({ chunk, token }) => ({ chunk: indices[chunk], token })),
  }));
}

describe("advantages of groups", () => {
  it.each(["std", "none"] as const)("are PyTorch's with scale %s, on sampled tokens only", scale => {
    const { advantages } = (grpo.method(settings({}, { scale })) as PolicyMethod).advantages(batch);
    const wanted = f(`advantages_${scale}`);
    chunks.forEach(({ mask }, chunk) => {
      close(
        advantages[chunk],
        Array.from(mask, bit => bit * wanted[owners[chunk]]),
      );
    });
  });

  it("are 0 in a group of equal rewards and in one of which one episode is left, and both are counted", () => {
    const { advantages, metrics } = METHODS.gspo.advantages(batch);
    expect(metrics).toEqual({ "groups.count": 3, "groups.uniform": 2, "groups.incomplete": 2 });
    for (const [chunk, owner] of owners.entries())
      expect(
        advantages[chunk].every(value => value === 0),
        `chunk ${chunk}`,
      ).toBe(tasks[owner] !== 0);
  });

  it("are 0 where rewards differ by rounding alone, which a division by their deviation would blow up", () => {
    const episodes = batch.episodes.map((episode, index) => ({ ...episode, reward: 0.1 + index * 1e-9 }));
    const { advantages } = METHODS.grpo.advantages(toBatch(episodes));
    for (const own of advantages) expect(own.every(value => value === 0)).toBe(true);
  });
});

describe.each(["grpo", "gspo"] as const)("%s", name => {
  it.each(["episode", "token"] as const)("gives loss and gradient with the %s mean", async mean => {
    const { loss, gradient } = await lossOf(METHODS[name], mean, microBatches(chunks));
    close([loss], f(`${name}.${mean}.loss`));
    close(gradient, f(`${name}.${mean}.grad`));
  });

  it("gives micro-batches whose losses and gradients add up to the batch's", async () => {
    const parts = [
      [4, 0, 7],
      [8, 1],
      [3, 2, 6, 5],
    ].flatMap(partOf);
    expect(parts).toHaveLength(3);
    const { loss, gradient } = await lossOf(METHODS[name], "episode", parts);
    close([loss], f(`${name}.episode.loss`));
    close(gradient, f(`${name}.episode.grad`));
  });
});

it("counts a clipped sequence with all its tokens, a clipped token alone", () => {
  const masks = chunks.map(({ mask }) => mask);
  const [now, old] = [perChunk(f("logp_new")), perChunk(f("logp_old"))];
  const sampled = f("mask").reduce((sum, bit) => sum + bit, 0);
  const outside = f("gspo.ratio").map((ratio, chunk) =>
    ratio < 0.95 || ratio > 1.08 ? masks[chunk].reduce((sum, bit) => sum + bit, 0) : 0,
  );
  const tokenRatios = f("logp_new").map((value, row) => Math.exp(value - f("logp_old")[row]));
  const share = {
    gspo: outside.reduce((sum, count) => sum + count, 0) / sampled,
    grpo:
      tokenRatios.filter((ratio, row) => f("mask")[row] === 1 && (ratio < 0.8 || ratio > 1.2)).length /
      sampled,
  };
  expect(share.gspo).not.toBe(share.grpo);
  for (const name of ["grpo", "gspo"] as const)
    expect(movement(masks, now, old, METHODS[name].surrogate).clipShare).toBeCloseTo(share[name], 6);
});
