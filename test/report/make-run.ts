// A finished run written straight into a store: all that a report reads, with whatever texts a test wants in it.

import { parseRunConfig } from "../../src/config/parse-config.ts";
import { sha256 } from "../../src/files/sha256.ts";
import type { IterationMetrics } from "../../src/learning/metrics.ts";
import { ChatFormat } from "../../src/model/chat-format.ts";
import { Tokenizer } from "../../src/model/tokenizer.ts";
import { trainTokenizer } from "../../src/model/train-tokenizer.ts";
import {
  arraysKey,
  attemptPrefix,
  auditKey,
  closedKey,
  episodeKey,
  episodePrefix,
  evaluationPrefix,
  iterationPrefix,
  metricsKey,
  type PhasePrefix,
  policyPrefix,
  runKey,
  stateKey,
  summaryKey,
  timingsKey,
  transcriptKey,
} from "../../src/run/keys.ts";
import type { ClosedPhase, EpisodeRecord } from "../../src/run/records.ts";
import { RUN_FORMAT } from "../../src/run/run-record.ts";
import { encodeJson, encodeJsonLines } from "../../src/store/json.ts";
import { writeFolder } from "../../src/store/manifest.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { putOnce } from "../../src/store/write-once.ts";
import type { Metrics } from "../../src/training/metrics.ts";
import { type Chunk, encodeChunks } from "../../src/trajectory/chunk.ts";
import { computeReceipt } from "../../src/trajectory/receipt.ts";
import { allocateRoutes, sliceRoutes } from "../../src/trajectory/routes.ts";
import { TokenStream } from "../../src/trajectory/stream.ts";

/** Texts that a policy, a terminal, a task or its author wrote. */
export interface Texts {
  readonly instruction: string;
  readonly answer: string;
  readonly observation: string;
  readonly task: string;
  readonly label: string;
  readonly test: string;
  readonly failure: string;
}

const PLAIN: Texts = {
  instruction: "Write 7 to a.txt.",
  answer: "echo 7 > a.txt",
  observation: "[ok]",
  task: "task",
  label: "move",
  test: "a.txt holds 7",
  failure: "no sandbox to be had",
};

export interface RunOptions {
  readonly kind?: "ppo" | "sft";
  readonly iterations?: number;
  readonly episodes?: number;
  readonly texts?: Partial<Texts>;
  /** Versions with an evaluation. */
  readonly evaluated?: readonly number[];
  readonly withTimings?: boolean;
}

const LAYOUT = { layerCount: 2, expertsPerToken: 2, expertCount: 4 };
const TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const TOKENIZER = trainTokenizer(["user\n assistant\n echo 7 > a.txt [ok] done"], {
  vocabSize: 270,
  specialTokens: ["<|pad|>", "<|im_start|>", "<|im_end|>"],
});
const MODEL = {
  model_type: "qwen3_moe",
  vocab_size: 270,
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 16,
  intermediate_size: 32,
  num_experts: 4,
  num_experts_per_tok: 2,
  moe_intermediate_size: 32,
  rope_theta: 10_000,
  max_position_embeddings: 256,
};

export const tokenizer = new Tokenizer(TOKENIZER, "tokenizer.json");
export const chat = new ChatFormat(tokenizer, { template: TEMPLATE, endOfTurn: "<|im_end|>" });

export async function makeRun(
  store: ObjectStore,
  run: string,
  {
    kind = "ppo",
    iterations = 4,
    episodes = 6,
    texts: own = {},
    evaluated = [],
    withTimings = true,
  }: RunOptions = {},
): Promise<void> {
  const texts = { ...PLAIN, ...own };
  const config = parseRunConfig(
    `algorithm: ${kind}\npolicy: model\ntasks:\n  pool: pool\ntraining:\n  iterations: ${Math.max(1, iterations)}\n`,
    "run.yaml",
  );
  const record = {
    format: RUN_FORMAT,
    run,
    createdAt: "2026-01-02T03:04:05.000Z",
    config,
    pool: { folder: "/pool", taskCount: 10 },
    software: { node: "v24", onnxruntime: "1", platform: "linux-x64", cpu: texts.label },
  };
  await putOnce(store, runKey(run), encodeJson(record));
  await putOnce(
    store,
    stateKey(run),
    encodeJson({
      rolloutsClosed: iterations,
      policyPublished: iterations,
      pool: { epoch: 0, position: 0 },
    }),
  );
  await writeFolder(store, policyPrefix(run, iterations), [
    { path: "config.json", body: encodeJson(MODEL) },
    { path: "tokenizer.json", body: encodeJson(TOKENIZER) },
    { path: "tokenizer_config.json", body: encodeJson({ chat_template: TEMPLATE }) },
  ]);
  for (let iteration = 0; iteration < iterations; iteration++) {
    const phase = iterationPrefix(run, iteration);
    await closePhase(store, phase, { version: iteration, episodes, iterations, texts });
    await putOnce(store, metricsKey(phase), encodeJson(metricsOf(kind, iteration, episodes)));
    await putOnce(
      store,
      auditKey(phase),
      encodeJson({
        policyVersion: iteration,
        chunkCount: 6,
        receiptCount: 12,
        tokenCount: 600,
        sampledTokenCount: 200,
      }),
    );
    if (withTimings)
      await putOnce(
        store,
        timingsKey(phase),
        encodeJson({ rollout: 2000 + iteration, train: 900, publish: 1 }),
      );
  }
  for (const version of evaluated) {
    const phase = evaluationPrefix(run, `held-out-v${`${version}`.padStart(6, "0")}-x1`);
    await closePhase(store, phase, { version, episodes, iterations, texts });
    const rates = {
      taskCount: episodes,
      episodeCount: episodes,
      resolved: { mean: 0.5, low: 0.4, high: 0.6 },
      reward: { mean: 0.5, low: 0.4, high: 0.6 },
    };
    const summary = {
      ...rates,
      missingCount: 0,
      worstCase: 0.5,
      valid: true,
      groups: { [texts.label]: rates },
    };
    await putOnce(store, summaryKey(phase), encodeJson(summary));
  }
}

interface PhaseOptions {
  readonly version: number;
  readonly episodes: number;
  readonly iterations: number;
  readonly texts: Texts;
}

async function closePhase(
  store: ObjectStore,
  phase: PhasePrefix,
  { version, episodes, iterations, texts }: PhaseOptions,
): Promise<void> {
  const labels = { kind: "single", families: [texts.label, "count"], looks: version % 2 === 0 };
  const entries: ClosedPhase["episodes"] = [];
  for (let episode = 0; episode < episodes; episode++) {
    const resolved = episode % 3 === 0 || version + 1 >= iterations;
    const endReason = episode % 3 === 2 ? ("turn_limit" as const) : ("completed" as const);
    const chunk = makeChunk(texts, version);
    const arrays = encodeChunks([chunk], LAYOUT);
    const at = attemptPrefix(episodePrefix(phase, episode), 1);
    const counts = { turnCount: 2, tokenCount: chunk.tokens.length, sampledTokenCount: 9 };
    const task = `${texts.task}-${episode}`;
    const record: EpisodeRecord = {
      format: "t1-episode-1",
      episode,
      attempt: 1,
      task,
      taskHash: "0".repeat(64),
      labels,
      policyVersion: version,
      endReason,
      ...counts,
      startedAt: "2026-01-02T03:04:05.000Z",
      times: { sandboxStartMs: 10, samplerMs: 20, commandMs: 5, verifierMs: 7, totalMs: 50 },
      report: {
        outcome: Number(resolved),
        tests: [
          { name: texts.test, status: "passed" },
          { name: texts.test, status: resolved ? "passed" : "failed" },
        ],
        exitCode: 0,
        durationMs: 5,
      },
      verifier: { mode: "hardened" },
      tampering: {
        found: [
          {
            kind: "interpreter_hook",
            path: `/app/${texts.test}`,
            change: "added",
            effect: "left_out",
          },
        ],
        moreCount: 3,
      },
      arraysSha256: sha256(arrays),
    };
    await putOnce(store, arraysKey(at), arrays);
    await putOnce(store, transcriptKey(at), encodeJsonLines(transcriptOf(texts, chunk)));
    await putOnce(store, episodeKey(at), encodeJson(record));
    const score = { reward: resolved ? 1 : 0.5, resolved, passed: resolved ? 2 : 1, total: 2 };
    entries.push({
      episode,
      attempt: 1,
      endReason,
      ...score,
      ...counts,
      task,
      labels,
      arraysSha256: sha256(arrays),
      recordSha256: sha256(encodeJson(record)),
    });
  }
  const failure = { layer: "sandbox" as const, name: "SandboxUnavailable" as const, retryable: true };
  const closed: ClosedPhase = {
    format: "t1-closed-1",
    policyVersion: version,
    rewardConfig: { kind: "dense", scale: 2 },
    episodes: entries,
    failed: [{ episode: 90, task: texts.task, labels, failure: { ...failure, detail: texts.failure } }],
    cancelled: [{ episode: 91, task: texts.task, labels, tokenCount: 400, turnCount: 9 }],
  };
  await putOnce(store, closedKey(phase), encodeJson(closed));
}

/** Encode at most this many characters of a text, because encoding takes long. */
const MOST_ENCODED = 300;

/** Prompt, an answer, an observation, `done`: with receipts that agree. */
function makeChunk(texts: Texts, policyVersion: number): Chunk {
  const [instruction, answer, observation] = [texts.instruction, texts.answer, texts.observation].map(text =>
    text.slice(0, MOST_ENCODED),
  );
  const stream = new TokenStream();
  const sample = (text: string): void => {
    const prompt = stream.tokens();
    const tokens = Int32Array.from([...tokenizer.encodeText(text), chat.endOfTurn]);
    const logProbs = Float32Array.from(tokens, (_, index) => -0.7 * (index % 9));
    const held = stream.routesHeld;
    const all = allocateRoutes(prompt.length + tokens.length - 1, LAYOUT);
    all.ids.forEach((_, index) => {
      all.ids[index] = index % 4;
    });
    const routes = sliceRoutes(all, held, all.rowCount);
    const receipt = computeReceipt({ prompt, sampled: tokens, logProbs, routes, policyVersion });
    stream.appendSampled({ tokens, logProbs, routes, policyVersion, receipt });
  };
  stream.appendGiven(chat.opening(instruction));
  sample(answer);
  stream.appendGiven(chat.observation(tokenizer.encodeText(observation)));
  sample("done");
  return stream.finish(LAYOUT);
}

function transcriptOf({ answer, observation }: Texts, { turns }: Chunk) {
  const [first, second] = turns;
  return [
    {
      turn: 0,
      start: first.start,
      end: first.end,
      answer,
      command: answer,
      observation,
      result: { kind: "exited", exitCode: 0 },
      samplerMs: 3,
      commandMs: 4,
    },
    { turn: 1, start: second.start, end: second.end, answer: "done", samplerMs: 3 },
  ];
}

function metricsOf(kind: "ppo" | "sft", iteration: number, count: number): IterationMetrics {
  const trained: Metrics =
    kind === "sft"
      ? {
          "sft.steps": 3,
          "batch.tokens": 90,
          "sft.loss": 1 / (iteration + 1),
          "sft.lastLoss": 0.1,
          "sft.learningRate": 0.001,
        }
      : {
          "batch.episodes": count,
          "batch.tokens": 72,
          "batch.meanReturn": 0.5,
          ...(iteration > 0 && { "critic.explainedVariance": 0.2 }),
          "critic.loss": 0.1,
          "critic.gradientNorm": 1,
          ...{ "mismatch.replayed.mean": 1e-5, "mismatch.replayed.p99": 1e-4 },
          ...{ "mismatch.free.mean": 1e-3, "mismatch.free.p99": 1e-2 },
          "policy.entropy": 0.5,
          ...(iteration > 1 && {
            "policy.loss": 0.1,
            "policy.gradientNorm": 0.2,
            "policy.clipShare": 0,
            "policy.klToOld": 1e-5,
          }),
        };
  return {
    format: "t1-metrics-2",
    policyVersion: iteration,
    endReasons: { completed: count - 2, turn_limit: 2 },
    numbers: {
      "episodes.count": count,
      "episodes.failed": 1,
      "episodes.cancelled": 1,
      "episodes.meanReward": 0.4 + iteration / 100,
      "episodes.resolvedRate": 0.3 + iteration / 100,
      "episodes.passingShare": 0.5,
      "episodes.meanTurns": 2,
      "episodes.meanTokens": 60,
      "episodes.meanSampledTokens": 12,
      ...trained,
    },
  };
}
