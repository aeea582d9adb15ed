// A number that is not finite, put into each thing that a training step reads or makes: the step is refused by the
// number's name, nothing of a version exists, and the same engine trains to the same bytes once the cause is gone.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { temporaryStore } from "../../../test/store/temporary-store.ts";
import { InputError } from "../../failure/errors.ts";
import { type FileSet, filesInMemory, readWhole, toSource } from "../../files/content.ts";
import { sha256 } from "../../files/sha256.ts";
import { readModelConfig } from "../../model/checkpoint.ts";
import { openLocalModel } from "../../model/model-folder.ts";
import { routeLayout } from "../../model/routing.ts";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { decodeSafetensors, encodeSafetensors } from "../../safetensors/format.ts";
import { rawTensor, tensorFloats } from "../../safetensors/numbers.ts";
import { openFileStore } from "../../store/file-store.ts";
import type { Chunk } from "../../trajectory/chunk.ts";
import { allocateRoutes } from "../../trajectory/routes.ts";
import { methodOf } from "../algorithms.ts";
import { type TrainingEpisode, toBatch } from "../batch.ts";
import type { Engine, StoredVersion, Trained, TrainRequest } from "../engine.ts";
import { createOnnxEngine } from "./engine.ts";

const MODEL = `${import.meta.dirname}/../../../test/fixtures/qwen3moe/ppo_actor_step`;
const NORM = "model.norm.weight";
const PPO = {
  iterations: 2,
  actor: { learningRate: 1e-3 },
  critic: { learningRate: 1e-3, onlyIterations: 0 },
};

let engine: Engine;
/** After one iteration: with a critic and moments. */
let version: StoredVersion;
let request: TrainRequest;
let wanted: Record<string, string>;

beforeAll(async () => {
  engine = createOnnxEngine({ threads: 2 });
  const policy = await openLocalModel(MODEL);
  const first: TrainRequest = {
    ...{ iteration: 0, seed: "s", sampling: { temperature: 1 }, planned: { episodes: 4 }, dumps: "d/" },
    batch: toBatch(await makeEpisodes(policy)),
    method: methodOf({ algorithm: "ppo", training: PPO }),
    from: { version: 0, policy, state: undefined, critic: undefined },
    sampledBy: undefined,
  };
  const folder = mkdtempSync(join(tmpdir(), "t1-not-finite-"));
  const store = await openFileStore(folder);
  const trained = await engine.train(first, { store });
  const state = filesInMemory("state/", trained.state);
  version = {
    ...{ version: 1, state, critic: filesInMemory("critic/", trained.critic) },
    policy: filesInMemory("policy/", await Array.fromAsync(engine.policyOf(state, policy))),
  };
  request = { ...first, iteration: 1, from: version };
  wanted = await hashesOf(await engine.train(request, { store }));
  // Nothing of a version is the engine's to write.
  expect(readdirSync(folder).filter(name => !name.startsWith("."))).toEqual([]);
  return async () => {
    rmSync(folder, { recursive: true });
    await engine[Symbol.asyncDispose]();
  };
}, 120_000);

async function makeEpisodes(policy: FileSet): Promise<TrainingEpisode[]> {
  const layout = routeLayout(await readModelConfig(policy));
  const random = new RandomStream(deriveSeed("not finite"));
  return [1, 0, 0.5, 0].map((reward, index) => ({
    ...{ id: `${index}`, task: `${index >> 1}`, endReason: "completed" as const, reward },
    chunks: [makeChunk(24 + 5 * index)],
  }));
  function makeChunk(length: number): Chunk {
    if (layout === undefined) throw new Error("a model without experts");
    const routes = allocateRoutes(length - 1, layout);
    routes.ids.forEach((_, at) => {
      routes.ids[at] = (at % 2) * 4 + random.integer(4);
    });
    const mask = Uint8Array.from({ length }, (_, t) => Number(t > 8));
    return {
      ...{ mask, routes, turns: [] },
      tokens: Int32Array.from({ length }, () => random.integer(320)),
      logProbs: Float32Array.from(mask, bit => -5.8 * bit),
    };
  }
}

/** The hash of each file of a version. */
async function hashesOf({ state, critic }: Trained): Promise<Record<string, string>> {
  const files = [...state, ...critic.map(({ path, body }) => ({ path: `critic/${path}`, body }))];
  const hashes = files.map(
    async ({ path, body }) => [path, sha256(await readWhole(toSource(body)))] as const,
  );
  return Object.fromEntries(await Promise.all(hashes));
}

/** The files with a tensor of one of them changed. */
async function changed(
  files: FileSet | undefined,
  file: string,
  change: Readonly<Record<string, (data: Float32Array) => void>>,
): Promise<FileSet> {
  if (files === undefined) throw new Error(`no ${file}`);
  const decoded = decodeSafetensors(await files.read(file), file);
  const tensors = new Map(decoded.tensors);
  for (const [name, edit] of Object.entries(change)) {
    const { data, shape } = tensorFloats(decoded, name);
    const copy = data.slice();
    edit(copy);
    tensors.set(name, rawTensor("F32", shape, copy));
  }
  const others = files.names.filter(name => name !== file);
  return filesInMemory(files.where, [
    ...others.map(path => ({ path, body: files.source(path) })),
    { path: file, body: encodeSafetensors(tensors, decoded.metadata) },
  ]);
}

const put = (value: number) => (data: Float32Array) => {
  data[3] = value;
};
const from = async (more: Partial<StoredVersion>): Promise<TrainRequest> => ({
  ...request,
  from: { ...version, ...more },
});
/** With the first episode, or its chunk, another. */
function withEpisode(more: Partial<TrainingEpisode>, chunk: Partial<Chunk> = {}): TrainRequest {
  const [first, ...others] = request.batch.episodes;
  const chunks = first.chunks.map(own => ({ ...own, ...chunk }));
  return { ...request, batch: toBatch([{ ...first, chunks, ...more }, ...others]) };
}

const INJECTED: readonly [what: string, where: RegExp, () => Promise<TrainRequest> | TrainRequest][] = [
  [
    "a weight of the policy",
    /model\.norm\.weight\[3\] while reading the policy/,
    async () =>
      from({
        state: await changed(version.state, "actor.safetensors", { [`parameter.${NORM}`]: put(Number.NaN) }),
      }),
  ],
  [
    "a weight that is finite in single precision alone, not in that of samplers",
    /model\.norm\.weight\[3\] while reading the policy/,
    async () =>
      from({
        state: await changed(version.state, "actor.safetensors", { [`parameter.${NORM}`]: put(3.4e38) }),
      }),
  ],
  [
    "a moment of the policy",
    /second\.model\.norm\.weight\[3\] while reading the policy/,
    async () =>
      from({
        state: await changed(version.state, "actor.safetensors", {
          [`second.${NORM}`]: put(Number.POSITIVE_INFINITY),
        }),
      }),
  ],
  [
    "a moment of the critic",
    /first\.model\.norm\.weight\[3\] while reading the critic/,
    async () =>
      from({
        state: await changed(version.state, "critic.safetensors", { [`first.${NORM}`]: put(Number.NaN) }),
      }),
  ],
  [
    "a weight of the critic",
    /value_head\.weight\[3\] while reading the critic/,
    async () =>
      from({
        critic: await changed(version.critic, "model.safetensors", { "value_head.weight": put(Number.NaN) }),
      }),
  ],
  [
    "a weight of the checkpoint that a run starts from",
    /model\.norm\.weight\[3\] while reading the policy/,
    async () => ({
      ...request,
      from: {
        ...{ version: 0, state: undefined, critic: undefined },
        policy: await changed(version.policy, "model.safetensors", { [NORM]: put(Number.NaN) }),
      },
    }),
  ],
  [
    "a reward",
    /reward of episode 0\[0\] while the batch was read/,
    () => withEpisode({ reward: Number.NaN }),
  ],
  [
    "a log-prob of the sampler",
    /log-probs of episode 0\[20\] while the batch was read/,
    () =>
      withEpisode(
        {},
        {
          logProbs: request.batch.chunks[0].logProbs.map((value, t) =>
            t === 20 ? Number.NEGATIVE_INFINITY : value,
          ),
        },
      ),
  ],
  [
    "a loss",
    /loss\[0\] while the critic was run before optimizer step 2/,
    () => withEpisode({ reward: 1e30 }),
  ],
  [
    "a gradient under a loss that is finite",
    /grad\.\S+\[\d+\] while gradients of the critic were added up for optimizer step 2/,
    async () =>
      from({
        critic: await changed(version.critic, "model.safetensors", {
          // Far below the norm's epsilon: what comes back is multiplied by a thousand, and by the norm's weight.
          "model.embed_tokens.weight": data =>
            data.forEach((value, at) => {
              data[at] = value * 1e-6;
            }),
          "model.layers.0.input_layernorm.weight": data => data.fill(1e6),
          "value_head.weight": data => data.fill(1e17),
        }),
      }),
  ],
  [
    "a number inside a policy whose weights are all finite",
    /log\.probs\[\d+\] while the policy was run before optimizer step 2/,
    async () =>
      from({
        state: await changed(version.state, "actor.safetensors", {
          [`parameter.${NORM}`]: data => data.fill(3e38),
        }),
      }),
  ],
];

describe("a training step is refused by name, leaves its explanation only, and succeeds when the cause is gone:", () => {
  it.each(INJECTED)("%s", async (_, where, inject) => {
    const store = await temporaryStore();
    const error = await engine.train(await inject(), { store }).catch(thrown => thrown);
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(where);
    expect(await Array.fromAsync(store.list(""), ({ key }) => key)).toEqual([
      "d/not-finite.json",
      "d/not-finite.safetensors",
    ]);
    expect(await hashesOf(await engine.train(request, { store }))).toEqual(wanted);
  });
});

describe("a learning rate of 1e37", () => {
  const actor = { learningRate: 1e37 };
  it.each([
    ["ppo", { ...PPO, actor }],
    ["ppo", { ...PPO, critic: { ...PPO.critic, ...actor } }],
    ["ppo", { ...PPO, actor, minibatches: 4 }],
    ["grpo", { iterations: 2, groupSize: 2, actor }],
    ["gspo", { iterations: 2, groupSize: 2, actor }],
    ["sft", { iterations: 2, warmupSteps: 0, ...actor }],
    ["sft", { iterations: 2, warmupSteps: 0, episodesPerStep: 1, ...actor }],
  ])("is found before %s with %o hands out a version", async (algorithm, training) => {
    const store = await temporaryStore();
    const method = methodOf({ algorithm, training });
    await expect(engine.train({ ...request, method }, { store })).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/ while .* expected a finite number, got .*lower learning rate/s),
    });
    expect(await hashesOf(await engine.train(request, { store }))).toEqual(wanted);
  });
});
