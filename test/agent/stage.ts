// Real sandboxes for episodes whose policy plays a script, shared by the tests of every protocol.

import { type EpisodeOutcome, type EpisodeSetup, runEpisode } from "../../src/agent/episode.ts";
import { chatOptions, findProtocol, type ProtocolName } from "../../src/agent/find-protocol.ts";
import { ChatFormat } from "../../src/model/chat-format.ts";
import { Tokenizer } from "../../src/model/tokenizer.ts";
import { trainTokenizer } from "../../src/model/train-tokenizer.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import type { Sandbox, SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { auditEpisode } from "../../src/trajectory/audit.ts";
import { LAYOUT, type Line, type ScriptedSampler, scriptedSampler } from "./scripted-sampler.ts";

/** A template like Qwen3's: tools in the system message, responses to calls in user turns of their own form. */
const TEMPLATE = `{%- if tools %}{{ '<|im_start|>system\\n# Tools\\n<tools>' }}{% for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}{{ '\\n</tools><|im_end|>\\n' }}{% endif -%}
{%- for m in messages -%}
{%- if m.role == 'tool' -%}
{%- if messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif -%}
{{ '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif -%}
{%- else -%}
{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}`;

export const tokenizer = new Tokenizer(
  trainTokenizer(["user\n assistant\n the terminal of keystrokes duration commands"], {
    vocabSize: 300,
    specialTokens: ["<|pad|>", "<|im_start|>", "<|im_end|>"],
  }),
  "tokenizer.json",
);

export function chatOf(protocol: ProtocolName): ChatFormat {
  return new ChatFormat(tokenizer, {
    template: TEMPLATE,
    ...chatOptions({ protocol, endOfTurn: "<|im_end|>" }),
  });
}

export interface Play {
  readonly protocol: ProtocolName;
  readonly instruction?: string;
  readonly limits?: Partial<EpisodeSetup["limits"]>;
  readonly summary?: EpisodeSetup["summary"];
  readonly signal?: AbortSignal;
}

export interface Played extends EpisodeOutcome {
  readonly sampler: ScriptedSampler;
  /** Output of a command in the sandbox after the episode. */
  readonly after: string;
}

export class Stage implements AsyncDisposable {
  readonly #provider: SandboxProvider;
  #made = 0;

  constructor(provider: SandboxProvider) {
    this.#provider = provider;
  }

  static async open(): Promise<Stage> {
    return new Stage(createBubblewrapProvider());
  }

  /** Plays a script and audits every chunk: receipts, masks, routes, and each sampled id where it was sampled. */
  async play(
    lines: readonly Line[],
    { protocol, instruction = "Do it.\n", limits = {}, summary, signal }: Play,
    after = "true",
  ): Promise<Played> {
    const spec = {
      image: { kind: "host" as const, files: [] },
      workdir: "/app",
      env: {},
      network: "none" as const,
      diskBytes: 8 << 20,
    };
    const lease = { id: `stage-${this.#made++}`, generation: 1, deadlineMs: Date.now() + 120_000 };
    const sandbox: Sandbox = await this.#provider.create(spec, lease);
    const chat = chatOf(protocol);
    const sampler = scriptedSampler(lines, chat, tokenizer);
    const setup: EpisodeSetup = {
      instruction,
      protocol: findProtocol({ protocol }),
      limits: {
        turns: 12,
        answerTokens: 4000,
        contextTokens: 60_000,
        observationTokens: 10_000,
        commandTimeoutMs: 5000,
        timeLimitMs: 60_000,
        outputBytes: 65_536,
        ...limits,
      },
      summary,
      chat,
      tokenizer,
      sampling: { temperature: 1, topP: 1, topK: 0 },
      policy: { version: 3, prefix: "policies/000003/" },
      layout: LAYOUT,
      seed: deriveSeed("stage"),
      signal,
    };
    try {
      const outcome = await runEpisode(setup, { sampler, sandbox });
      assertRecorded(outcome, sampler);
      const { stdout } = await sandbox.exec(after, { timeoutMs: 10_000 });
      return { ...outcome, sampler, after: Buffer.from(stdout.head).toString() };
    } finally {
      await sandbox[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#provider[Symbol.asyncDispose]();
  }
}

/** @throws when a token that was sampled is not, as it was, where the record has it */
function assertRecorded({ chunks, transcript }: EpisodeOutcome, { generations }: ScriptedSampler): void {
  const turns = chunks.flatMap(chunk => chunk.turns.map(turn => ({ chunk, turn })));
  if (turns.length !== generations.length || transcript.length !== generations.length)
    throw new Error(`${generations.length} answers, ${turns.length} turns, ${transcript.length} records`);
  auditEpisode(chunks, { layout: LAYOUT, policyVersion: 3 });
  turns.forEach(({ chunk, turn }, index) => {
    const recorded = [...chunk.tokens.subarray(turn.start, turn.end)].join();
    const { start, end, answer } = transcript[index];
    if (recorded !== [...generations[index].tokens].join() || start !== turn.start || end !== turn.end)
      throw new Error(`answer ${index} was sampled otherwise than it is recorded: ${answer.slice(0, 100)}`);
  });
}
