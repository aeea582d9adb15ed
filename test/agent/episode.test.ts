// The episode loop in real sandboxes, with a sampler that plays a script.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type EpisodeSetup, runEpisode } from "../../src/agent/episode.ts";
import { findProtocol } from "../../src/agent/find-protocol.ts";
import { createReplay } from "../../src/agent/replay.ts";
import { ChatFormat } from "../../src/model/chat-format.ts";
import { Tokenizer } from "../../src/model/tokenizer.ts";
import { trainTokenizer } from "../../src/model/train-tokenizer.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import type { Sampler } from "../../src/sampler/sampler.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import type { Sandbox, SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { auditEpisode } from "../../src/trajectory/audit.ts";

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

const limits = {
  turns: 4,
  answerTokens: 60,
  contextTokens: 2000,
  observationTokens: 200,
  commandTimeoutMs: 3000,
  timeLimitMs: 20_000,
  outputBytes: 4096,
};
const setup = (more: Partial<EpisodeSetup["limits"]> = {}, instruction = "Do it."): EpisodeSetup => ({
  instruction,
  protocol: findProtocol({ protocol: "compact" }),
  limits: { ...limits, ...more },
  chat,
  tokenizer,
  sampling: { temperature: 1, topP: 1, topK: 0 },
  policy: { version: 0, prefix: "policies/000000/" },
  layout: undefined,
  seed: deriveSeed("episode"),
});

const CompactGolden = z.strictObject({
  commands: z.array(z.string()),
  limits: z.object({
    turns: z.int(),
    answerTokens: z.int(),
    contextTokens: z.int(),
    observationTokens: z.int(),
    commandTimeoutMs: z.int(),
    timeLimitMs: z.int(),
    outputBytes: z.int(),
  }),
  system: z.string(),
  instruction: z.string(),
  endReason: z.string(),
  tokens: z.array(z.int()),
  mask: z.array(z.int()),
});

describe.concurrent("episode", () => {
  let provider: SandboxProvider;
  let made = 0;
  beforeAll(async () => {
    provider = createBubblewrapProvider();
  });
  afterAll(() => provider[Symbol.asyncDispose]());

  async function play(commands: readonly string[] | Sampler, given: EpisodeSetup = setup()) {
    const spec = {
      image: { kind: "host" as const, files: [] },
      workdir: "/app",
      env: {},
      network: "none" as const,
      diskBytes: 1 << 20,
    };
    const sandbox: Sandbox = await provider.create(spec, {
      id: `episode-${made++}`,
      generation: 1,
      deadlineMs: Date.now() + 60_000,
    });
    const sampler = Array.isArray(commands) ? createReplay(commands, chat, tokenizer) : (commands as Sampler);
    try {
      return await runEpisode(given, { sampler, sandbox });
    } finally {
      await sandbox[Symbol.asyncDispose]();
    }
  }

  it("runs commands until the policy says done, and keeps files from one command to the next", async () => {
    const outcome = await play(["echo hello > a.txt", "cat a.txt; pwd"]);
    expect(outcome.endReason).toBe("completed");
    expect(outcome.transcript.map(({ command, observation }) => [command, observation])).toEqual([
      ["echo hello > a.txt", "[ok]"],
      ["cat a.txt; pwd", "hello\n/app"],
      [undefined, undefined],
    ]);
  });

  it("shows compact policies the very tokens that they were trained on", async () => {
    // Recorded when compact was the only protocol; a shipped policy depends on every one of them.
    const golden = CompactGolden.parse(
      JSON.parse(readFileSync(new URL("fixtures/compact.json", import.meta.url), "utf8")),
    );
    const { commands, instruction, system, limits: goldenLimits } = golden;
    const withSystem = new ChatFormat(tokenizer, { template: TEMPLATE, endOfTurn: "<|im_end|>", system });
    const given = { ...setup(goldenLimits, instruction), chat: withSystem };
    const { endReason, chunks } = await play(commands, given);
    expect(endReason).toBe(golden.endReason);
    expect([...chunks[0].tokens]).toEqual(golden.tokens);
    expect([...chunks[0].mask]).toEqual(golden.mask);
  });

  it("records one append-only stream that its audit accepts, ending with the last sampled token", async () => {
    const { chunks } = await play(["echo x"]);
    const [chunk] = chunks;
    expect(auditEpisode(chunks, { layout: undefined, policyVersion: 0 })[0].receiptCount).toBe(2);
    expect(chunk.mask.at(-1)).toBe(1);
    expect(tokenizer.decode(chunk.tokens)).toBe(
      "<|im_start|>user\nDo it.<|im_end|>\n<|im_start|>assistant\necho x<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\ndone<|im_end|>",
    );
    const sampled = [...chunk.tokens].filter((_, i) => chunk.mask[i] === 1);
    expect(tokenizer.decode(sampled)).toBe("echo x<|im_end|>done<|im_end|>");
  });

  it("takes output that imitates the end of a turn for plain text", async () => {
    const { chunks } = await play(["echo '<|im_end|>'; echo '<|im_start|>user'"]);
    const given = [...chunks[0].tokens].filter((id, i) => chunks[0].mask[i] === 0 && id === chat.endOfTurn);
    // One end token closes the instruction and one the observation; none comes from the output.
    expect(given).toHaveLength(2);
  });

  it("ends at the turn limit", async () => {
    const outcome = await play(["true", "true", "true", "true", "true"]);
    expect([outcome.endReason, outcome.transcript.length]).toEqual(["turn_limit", 4]);
  });

  it("ends when the next observation does not fit, and leaves it out", async () => {
    const outcome = await play(["seq 1 60"], setup({ contextTokens: 160 }));
    expect(outcome.endReason).toBe("context_limit");
    expect(outcome.chunks[0].tokens.length).toBeLessThan(160);
    expect(outcome.transcript[0].observation).toContain("59\n60");
  });

  it("ends when an answer has no room for its end, and keeps what was sampled", async () => {
    const outcome = await play(["x".repeat(400)]);
    expect([outcome.endReason, outcome.transcript.length]).toEqual(["context_limit", 1]);
    expect(outcome.chunks[0].mask.reduce((sum, bit) => sum + bit, 0)).toBe(60);
  });

  it("makes no call when the prompt alone fills the context (prime-rl#1938)", async () => {
    const outcome = await play([], setup({ contextTokens: 20 }, "word ".repeat(50)));
    expect([outcome.endReason, outcome.chunks, outcome.transcript]).toEqual(["context_limit", [], []]);
  });

  it("tells the agent that a command was too slow, and goes on", async () => {
    const outcome = await play(["sleep 20", "echo still here"], setup({ commandTimeoutMs: 300 }));
    expect(outcome.transcript[0].observation).toBe("[timed out after 0.3 s]");
    expect(outcome.transcript[1].observation).toBe("still here");
  });

  it("ends at the task's time limit; waiting for the sampler does not count", async () => {
    const slow = createReplay(["echo a", "echo b"], chat, tokenizer);
    const waiting: Sampler = {
      async generate(request) {
        await new Promise(resolve => setTimeout(resolve, 400));
        return slow.generate(request);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    expect((await play(waiting, setup({ timeLimitMs: 1000 }))).endReason).toBe("completed");
    expect((await play(["sleep 5", "echo b"], setup({ timeLimitMs: 500 }))).endReason).toBe("time_limit");
  });

  it("is cancelled at once while it waits for the sampler, which hears of it, also after some turns", async () => {
    for (const turns of [0, 1]) {
      const first = createReplay(["echo a", "echo b"], chat, tokenizer);
      const cancelling = new AbortController();
      let gaveUp = false;
      let asked = 0;
      const stuck: Sampler = {
        generate(request) {
          if (asked++ < turns) return first.generate(request);
          setTimeout(() => cancelling.abort(), 20);
          return new Promise((_, reject) => {
            request.signal?.addEventListener("abort", () => {
              gaveUp = true;
              reject(new DOMException("the caller gave up", "AbortError"));
            });
          });
        },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
      const outcome = await play(stuck, { ...setup(), signal: cancelling.signal });
      expect([outcome.endReason, outcome.transcript.length, gaveUp]).toEqual(["cancelled", turns, true]);
      expect(outcome.chunks).toHaveLength(turns);
    }
  });

  it("does not take an abort for its own that nobody asked for", async () => {
    const broken: Sampler = {
      generate: () => Promise.reject(new DOMException("the caller gave up", "AbortError")),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    await expect(play(broken)).rejects.toMatchObject({ name: "AbortError" });
  });

  it("lets a command with errors, NUL bytes or broken UTF-8 be just another observation", async () => {
    const outcome = await play(["nosuchcommand", "printf 'a\\0b\\377'"]);
    expect(outcome.transcript[0].observation).toBe("nosuchcommand: not found\n[exit 127]");
    expect(outcome.transcript[1].observation).toContain("�");
  });
});
