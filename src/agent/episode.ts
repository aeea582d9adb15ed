// One episode: prompt → answer → command → observation → … until something ends it (`#play` below is the loop). Text is
// encoded once, when it enters, and never tokenised again; the stream of token ids is the record of what happened.
import type { EndReason } from "../failure/end-reason.ts";
import { Failure, InvariantError } from "../failure/errors.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import { deriveSeed } from "../random/seed.ts";
import type { PolicyReference, Sampler, SamplingSettings } from "../sampler/sampler.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Chunk } from "../trajectory/chunk.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { TokenStream } from "../trajectory/stream.ts";
import { limitTokens } from "./limit-tokens.ts";
import type { Conversation, Played, Protocol, ProtocolLimits } from "./protocol.ts";
import { type Asked, handOver, type SummarySettings } from "./summary.ts";
import type { SummaryCall, TranscriptTurn } from "./transcript.ts";

export interface EpisodeLimits extends ProtocolLimits {
  readonly turns: number;
  /** Sampled tokens of one answer, its end-of-turn token included. */
  readonly answerTokens: number;
  /** Tokens of the whole stream. */
  readonly contextTokens: number;
  readonly observationTokens: number;
  /** Time of the agent as a whole; waiting for the sampler does not count. */
  readonly timeLimitMs: number;
}

export interface EpisodeSetup {
  readonly instruction: string;
  readonly protocol: Protocol;
  readonly limits: EpisodeLimits;
  /** How a full context is handed over; when undefined, a full context ends the episode. */
  readonly summary?: SummarySettings;
  readonly chat: ChatFormat;
  readonly tokenizer: Tokenizer;
  readonly sampling: SamplingSettings;
  readonly policy: PolicyReference;
  /** Undefined for a model without experts. */
  readonly layout: RouteLayout | undefined;
  /** Derived seed of this episode. */
  readonly seed: string;
  readonly signal?: AbortSignal;
  /** The conversation of the step before, whose last answer said that it was done; this instruction goes on with it. */
  readonly continued?: Continuation;
}

/** The state of a conversation that a next step of the task goes on with. */
interface Continuation {
  /** Chunks that are closed. */
  readonly chunks: readonly Chunk[];
  readonly stream: TokenStream;
  readonly turnCount: number;
}

export interface EpisodeOutcome {
  readonly endReason: Exclude<EndReason, "failure">;
  /** From the beginning of the conversation, in the order of their answers; empty when the prompt filled the context. */
  readonly chunks: readonly Chunk[];
  readonly continuation: Continuation;
  /** One record per answer to this instruction, in their order; turns are counted from the beginning. */
  readonly transcript: readonly TranscriptTurn[];
  readonly samplerMs: number;
  readonly sandboxMs: number;
}

/** Stands between the kept head and tail of a long observation. */
const CUT_MARKER = "\n[...]\n";

interface EpisodeServices {
  readonly sampler: Sampler;
  readonly sandbox: Sandbox;
  readonly now?: () => number;
}

/**
 * Plays one episode, or one step of a task of several steps.
 *
 * @throws Failure when sampler or sandbox fail by themselves; everything that the agent can cause is an outcome
 */
export async function runEpisode(setup: EpisodeSetup, services: EpisodeServices): Promise<EpisodeOutcome> {
  const { now = performance.now.bind(performance) } = services;
  const startedAt = now();
  const opening = setup.protocol.open(services.sandbox, setup.instruction, setup.limits);
  const conversation = await opening.catch(unlessBroken);
  if (conversation === undefined) return notOpened(setup);
  try {
    return await new Episode(setup, conversation, services.sampler, now, startedAt).run();
  } finally {
    await conversation[Symbol.asyncDispose]();
  }
}

class Episode {
  readonly #setup: EpisodeSetup;
  readonly #conversation: Conversation;
  readonly #sampler: Sampler;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #chunks: Chunk[];
  readonly #transcript: TranscriptTurn[] = [];
  readonly #earlierTurns: number;
  #stream: TokenStream;
  #samplerMs = 0;
  #sandboxMs = 0;

  constructor(
    setup: EpisodeSetup,
    conversation: Conversation,
    sampler: Sampler,
    now: () => number,
    startedAt: number,
  ) {
    this.#setup = setup;
    this.#conversation = conversation;
    this.#sampler = sampler;
    this.#now = now;
    this.#startedAt = startedAt;
    const { chunks, stream, turnCount } = setup.continued ?? nothingYet();
    this.#chunks = [...chunks];
    this.#stream = stream;
    this.#earlierTurns = turnCount;
  }

  async run(): Promise<EpisodeOutcome> {
    const endReason = await this.#play().catch(error => {
      // The sampler gives up its answer as soon as the episode is cancelled.
      if (this.#setup.signal?.aborted && isAbortError(error)) return "cancelled" as const;
      throw error;
    });
    const continuation = {
      chunks: this.#chunks,
      stream: this.#stream,
      turnCount: this.#earlierTurns + this.#transcript.filter(({ purpose }) => purpose === undefined).length,
    };
    return {
      endReason,
      chunks: wholeChunks(continuation, this.#setup.layout),
      continuation,
      transcript: this.#transcript,
      samplerMs: this.#samplerMs,
      sandboxMs: this.#sandboxMs,
    };
  }

  /** The loop of an episode: ask the policy, play its answer in the sandbox, append what it observed. */
  async #play(): Promise<EpisodeOutcome["endReason"]> {
    const { limits, chat, tokenizer, signal, continued } = this.#setup;
    let prompt: string | undefined = this.#conversation.opening;
    this.#stream.appendGiven(
      continued === undefined ? chat.opening(prompt) : chat.observation(tokenizer.encodeText(prompt)),
    );
    const first = this.#earlierTurns;
    for (let turn = first; turn < first + limits.turns; turn++) {
      if (signal?.aborted) return "cancelled";
      const maxNewTokens = Math.min(limits.answerTokens, limits.contextTokens - this.#stream.length);
      if (maxNewTokens <= 0) return "context_limit";
      const { generation, record } = await this.#ask(
        this.#stream,
        maxNewTokens,
        turn,
        deriveSeed(this.#setup.seed, "turn", turn),
      );
      const turnRecord = { ...record, ...(prompt !== undefined && { prompt }) };
      prompt = undefined;
      // An answer that ran out of room has no end; nothing may be appended to it.
      if (generation.finishReason !== "stop") {
        this.#transcript.push(turnRecord);
        return "context_limit";
      }
      const leftMs = this.#leftMs();
      const played = await this.#conversation
        .play(record.answer, { turn, leftMs, signal })
        .catch(unlessBroken);
      if (played === undefined) {
        this.#transcript.push(turnRecord);
        return "agent_error";
      }
      this.#sandboxMs += played.log.commandMs ?? 0;
      this.#transcript.push({ ...turnRecord, ...played.log });
      if (played.kind === "ended") return played.reason;
      if (this.#leftMs() <= 0) return "time_limit";

      const next = this.#encodeObservation(played);
      const isFull = this.#stream.length + next.length >= limits.contextTokens;
      if (!this.#wantsSummary(isFull, turn)) {
        if (isFull) return "context_limit";
        this.#stream.appendGiven(next);
        continue;
      }
      prompt = await this.#handOver(turn);
      if (prompt === undefined) return signal?.aborted ? "cancelled" : "context_limit";
    }
    return "turn_limit";
  }

  #leftMs(): number {
    return this.#setup.limits.timeLimitMs - (this.#now() - this.#startedAt - this.#samplerMs);
  }

  /** Asks the sampler to go on with a stream, and appends the answer as it was sampled. */
  async #ask(stream: TokenStream, maxNewTokens: number, turn: number, seed: string): Promise<Asked> {
    const { sampling, chat, policy, tokenizer, signal } = this.#setup;
    const askedAt = this.#now();
    const start = stream.length;
    const generation = await this.#sampler.generate({
      tokens: stream.tokens(),
      routesHeld: stream.routesHeld,
      sampling,
      stop: [chat.endOfTurn],
      maxNewTokens,
      seed,
      policy,
      signal,
    });
    const samplerMs = this.#now() - askedAt;
    this.#samplerMs += samplerMs;
    stream.appendSampled(generation);
    const isWhole = generation.finishReason === "stop";
    const answer = tokenizer.decode(isWhole ? generation.tokens.subarray(0, -1) : generation.tokens);
    return { generation, record: { turn, start, end: stream.length, answer, samplerMs } };
  }

  #encodeObservation(played: Played & { readonly kind: "observed" }): number[] {
    const { chat, tokenizer, limits } = this.#setup;
    const marker = tokenizer.encodeText(CUT_MARKER);
    const encode = (text: string, limit: number): number[] =>
      limitTokens(tokenizer.encodeText(text), limit, marker);
    if (played.role === "user") return chat.observation(encode(played.text, limits.observationTokens));
    // Several responses share the room of one observation.
    const share = Math.max(1, Math.floor(limits.observationTokens / played.texts.length));
    return chat.toolResponses(played.texts.map(text => encode(text, share)));
  }

  /** No summary is made before the last turn: nothing would use it. */
  #wantsSummary(isFull: boolean, turn: number): boolean {
    const { summary, limits } = this.#setup;
    if (summary === undefined || turn + 1 >= this.#earlierTurns + limits.turns) return false;
    return isFull || limits.contextTokens - this.#stream.length < summary.freeTokens;
  }

  /** @returns the message that the new conversation goes on from; undefined when no summary helps, or it was cancelled */
  async #handOver(turn: number): Promise<string | undefined> {
    const { summary, chat, tokenizer, layout, limits, seed, signal } = this.#setup;
    const { handover, opening } = this.#conversation;
    if (summary === undefined || handover === undefined) {
      throw new InvariantError("this protocol cannot be compacted", { summary });
    }
    const old = this.#stream;
    this.#closeChunk();
    if (signal?.aborted) return undefined;
    const { chunks, transcript, handedOver } = await handOver(old, opening, handover, summary, {
      chat,
      tokenizer,
      layout,
      contextTokens: limits.contextTokens,
      screenTokens: limits.observationTokens,
      ask: (stream: TokenStream, maxNewTokens: number, call: SummaryCall) =>
        this.#ask(stream, maxNewTokens, turn, deriveSeed(seed, "summary", turn, call)),
    });
    this.#chunks.push(...chunks);
    this.#transcript.push(...transcript);
    if (handedOver === undefined) return undefined;
    this.#stream = handedOver.stream;
    return handedOver.prompt;
  }

  /** Ends the open chunk after its last answer: tokens behind it were never fed. A stream without an answer is no chunk. */
  #closeChunk(): void {
    if (this.#stream.answerEnds.length > 0) this.#chunks.push(this.#stream.finish(this.#setup.layout));
    this.#stream = new TokenStream();
  }
}

function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function nothingYet(): Continuation {
  return { chunks: [], stream: new TokenStream(), turnCount: 0 };
}

/** All chunks, with the open one unless it has no answer. */
function wholeChunks({ chunks, stream }: Continuation, layout: RouteLayout | undefined): readonly Chunk[] {
  return stream.answerEnds.length > 0 ? [...chunks, stream.finish(layout)] : chunks;
}

/** A sandbox that was brought to its end from inside has no result; every other failure is the infrastructure's. */
function unlessBroken(error: unknown): undefined {
  if (error instanceof Failure && error.name === "SandboxBroken") return undefined;
  throw error;
}

/** The outcome when an earlier step left a sandbox in which no conversation can be opened. */
function notOpened({ continued, layout }: EpisodeSetup): EpisodeOutcome {
  const continuation = continued ?? nothingYet();
  const chunks = wholeChunks(continuation, layout);
  return { endReason: "agent_error", chunks, continuation, transcript: [], samplerMs: 0, sandboxMs: 0 };
}
