// Plays written commands on a task, through a whole attempt: sandbox, episode, verifier, record, reward.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createReplay } from "../../src/agent/replay.ts";
import { TranscriptTurn } from "../../src/agent/transcript.ts";
import type { RunConfig } from "../../src/config/run-config.ts";
import type { ImageBuilder } from "../../src/image/image-builder.ts";
import { readImages } from "../../src/image/images-file.ts";
import { ChatFormat } from "../../src/model/chat-format.ts";
import { Tokenizer } from "../../src/model/tokenizer.ts";
import { trainTokenizer } from "../../src/model/train-tokenizer.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { runAttempt } from "../../src/rollout/attempt.ts";
import { type PreparedTask, prepareTask } from "../../src/rollout/prepare.ts";
import { rewardOf } from "../../src/rollout/score.ts";
import type { ImageServices } from "../../src/rollout/task-image.ts";
import { attemptPrefix, episodePrefix, iterationPrefix, transcriptKey } from "../../src/run/keys.ts";
import type { EpisodeRecord } from "../../src/run/records.ts";
import type { Sampler } from "../../src/sampler/sampler.ts";
import { createRootBuilder } from "../../src/sandbox/bubblewrap/root-builder.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { openFileStore } from "../../src/store/file-store.ts";
import { readJsonLines } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

const TEMPLATE =
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const tokenizer = new Tokenizer(
  trainTokenizer(["user\n assistant\n echo cat done"], {
    vocabSize: 262,
    specialTokens: ["<|pad|>", "<|im_start|>", "<|im_end|>"],
  }),
  "tokenizer.json",
);
const chat = new ChatFormat(tokenizer, { template: TEMPLATE, endOfTurn: "<|im_end|>" });

const AGENT = {
  protocol: "compact",
  turns: 40,
  answerTokens: 20_000,
  contextTokens: 200_000,
  observationTokens: 2000,
  commandSeconds: 20,
  outputBytes: 65_536,
  endOfTurn: "<|im_end|>",
} as const satisfies RunConfig["agent"];

const IMAGES = readImages(undefined);

export interface Played {
  readonly record: EpisodeRecord;
  /** Binary reward. */
  readonly reward: number | undefined;
  readonly observations: readonly string[];
  readonly store: ObjectStore;
}

const NEVER = new AbortController().signal;

/** Writes tasks, plays them, and leaves nothing behind. */
export class TaskStage implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "t1-stage-"));
  readonly #provider: SandboxProvider;
  readonly #builder: ImageBuilder;
  #count = 0;

  /** @param builder of images for the provider; without one, the builder for bubblewrap */
  constructor(provider: SandboxProvider, builder = createRootBuilder(IMAGES, provider)) {
    this.#provider = provider;
    this.#builder = builder;
  }

  /** @param files by path below the task's folder; those that begin with #! are made executable */
  writeTask(files: Readonly<Record<string, string>>): string {
    const folder = join(this.#folder, `task-${this.#count++}`);
    for (const [path, text] of Object.entries(files)) {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text, { mode: text.startsWith("#!") ? 0o755 : 0o644 });
    }
    return folder;
  }

  get images(): ImageServices {
    return { images: IMAGES, builder: this.#builder };
  }

  prepare(folder: string): Promise<PreparedTask> {
    return prepareTask(folder, { ...this.images, demonstration: false });
  }

  /** @param scripts what the agent does: for each step its commands */
  async play(
    task: string | PreparedTask,
    scripts: readonly (readonly string[])[],
    verifier: RunConfig["verifier"] = { mode: "hardened", keepFiles: false },
  ): Promise<Played> {
    const number = this.#count++;
    const prepared = typeof task === "string" ? await this.prepare(task) : task;
    const root = join(this.#folder, `store-${number}`);
    if (!existsSync(root)) mkdirSync(root);
    const store = await openFileStore(root);
    const phase = iterationPrefix(`play-${number}`, 0);
    const planned = {
      episode: 0,
      task: prepared.task.name,
      taskHash: prepared.task.hashes.task,
      repeat: 0,
      seed: deriveSeed("play", number),
    };
    const record = await runAttempt(
      {
        ...{ phase, planned, attempt: 1, prepared, layout: undefined },
        config: { agent: AGENT, sampling: { temperature: 1, topP: 1, topK: 0 }, verifier },
        policy: { version: 0, prefix: "policies/000000/" },
      },
      {
        ...{ store, sandboxes: this.#provider, chat, tokenizer, samplerFor: () => inTurn(scripts) },
        ...{ signal: NEVER, interruption: NEVER },
      },
    );
    const at = attemptPrefix(episodePrefix(phase, 0), 1);
    const turns = record.failure ? [] : await readJsonLines(store, transcriptKey(at), TranscriptTurn);
    const { report } = record;
    return {
      record,
      reward: report && rewardOf(record, report, { kind: "binary", scale: 20 }).value,
      observations: turns.map(({ observation = "" }) => observation),
      store,
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    return Promise.resolve();
  }
}

/** Plays one script after the other, each until it says that it is done. */
function inTurn(scripts: readonly (readonly string[])[]): Sampler {
  const samplers = scripts.map(script => ({
    sampler: createReplay(script, chat, tokenizer),
    answersLeft: script.length + 1,
  }));
  return {
    generate(request) {
      const current = samplers.find(({ answersLeft }) => answersLeft > 0);
      if (current === undefined) throw new Error("nobody expected another step");
      current.answersLeft -= 1;
      return current.sampler.generate(request);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
