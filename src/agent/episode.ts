// One episode: prompt → answer → command → observation → … until something ends it. Text goes in once and is never
// tokenised again; the stream of token ids is what happened.
import type { EndReason } from "../failure/end-reason.ts";
import { Failure } from "../failure/errors.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import { deriveSeed } from "../random/seed.ts";
import type { PolicyReference, Sampler, SamplingSettings } from "../sampler/sampler.ts";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Chunk } from "../trajectory/chunk.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { TokenStream } from "../trajectory/stream.ts";
import { formatObservation, limitTokens, parseAnswer, shellText } from "./compact-protocol.ts";
import type { TranscriptTurn } from "./transcript.ts";

export interface EpisodeLimits {
  readonly turns: number;
  /** Sampled tokens of one answer, its end-of-turn token included. */
  readonly answerTokens: number;
  /** Tokens of the whole stream. */
  readonly contextTokens: number;
  readonly observationTokens: number;
  readonly commandTimeoutMs: number;
  /** Time of the agent as a whole; waiting for the sampler does not count. */
  readonly timeLimitMs: number;
  /** Kept output of one command. */
  readonly outputBytes: number;
}

export interface EpisodeSetup {
  readonly instruction: string;
  readonly limits: EpisodeLimits;
  readonly chat: ChatFormat;
  readonly tokenizer: Tokenizer;
  readonly sampling: SamplingSettings;
  readonly policy: PolicyReference;
  readonly layout: RouteLayout;
  /** Derived seed of this episode. */
  readonly seed: string;
  readonly signal?: AbortSignal;
  /** A conversation that goes on with this instruction; its last answer said that it was done. */
  readonly continued?: { readonly stream: TokenStream; readonly turnCount: number };
}

export interface EpisodeOutcome {
  readonly endReason: Exclude<EndReason, "failure">;
  /** From the beginning of the conversation. Empty when the prompt alone filled the context. */
  readonly chunks: readonly Chunk[];
  /** The same, to go on with. */
  readonly stream: TokenStream;
  /** Turns of this instruction; they are counted from the beginning of the conversation. */
  readonly transcript: readonly TranscriptTurn[];
  readonly samplerMs: number;
  readonly sandboxMs: number;
}

/** Between the kept head and tail of a long observation. */
const CUT_MARKER = "\n[...]\n";

/**
 * @throws Failure when sampler or sandbox fail by themselves; whatever the agent does is an outcome
 */
export async function runEpisode(
  setup: EpisodeSetup,
  {
    sampler,
    sandbox,
    now = performance.now.bind(performance),
  }: { readonly sampler: Sampler; readonly sandbox: Sandbox; readonly now?: () => number },
): Promise<EpisodeOutcome> {
  const { limits, chat, tokenizer } = setup;
  const { stream, turnCount: earlierTurns } = setup.continued ?? { stream: new TokenStream(), turnCount: 0 };
  const transcript: TranscriptTurn[] = [];
  const startedAt = now();
  let samplerMs = 0;
  let sandboxMs = 0;
  const finish = (endReason: EpisodeOutcome["endReason"]): EpisodeOutcome => ({
    endReason,
    chunks: earlierTurns + transcript.length === 0 ? [] : [stream.finish(setup.layout)],
    stream,
    transcript,
    samplerMs,
    sandboxMs,
  });

  const instruction = withoutFinalNewline(setup.instruction);
  stream.appendGiven(
    setup.continued === undefined
      ? chat.opening(instruction)
      : chat.observation(tokenizer.encodeText(instruction)),
  );
  for (let turn = earlierTurns; turn < earlierTurns + limits.turns; turn++) {
    if (setup.signal?.aborted) return finish("cancelled");
    const maxNewTokens = Math.min(limits.answerTokens, limits.contextTokens - stream.length);
    if (maxNewTokens <= 0) return finish("context_limit");

    const askedAt = now();
    const start = stream.length;
    const generation = await sampler.generate({
      tokens: stream.tokens(),
      routesHeld: stream.routesHeld,
      sampling: setup.sampling,
      stop: [chat.endOfTurn],
      maxNewTokens,
      seed: deriveSeed(setup.seed, "turn", turn),
      policy: setup.policy,
    });
    const waitedMs = now() - askedAt;
    samplerMs += waitedMs;
    stream.appendSampled(generation);
    const complete = generation.finishReason === "stop";
    const answer = tokenizer.decode(complete ? generation.tokens.subarray(0, -1) : generation.tokens);
    const record = { turn, start, end: stream.length, answer, samplerMs: waitedMs };

    // An answer that ran out of room has no end; nothing may be appended to it.
    if (!complete) {
      transcript.push(record);
      return finish("context_limit");
    }
    const action = parseAnswer(answer);
    if (action.kind === "done") {
      transcript.push(record);
      return finish("completed");
    }
    const leftMs = limits.timeLimitMs - (now() - startedAt - samplerMs);
    if (leftMs <= 0) {
      transcript.push(record);
      return finish("time_limit");
    }
    const result = await sandbox
      .exec(shellText(action.command), {
        timeoutMs: Math.min(limits.commandTimeoutMs, leftMs),
        outputLimitBytes: limits.outputBytes,
        requestId: `turn-${turn}`,
      })
      .catch(unlessBroken);
    if (result === undefined) {
      transcript.push({ ...record, command: action.command });
      return finish("agent_error");
    }
    sandboxMs += result.durationMs;
    const observation = formatObservation(capturedText(result.stdout), result.end);
    transcript.push({
      ...record,
      command: action.command,
      observation,
      result: result.end,
      commandMs: result.durationMs,
    });

    if (now() - startedAt - samplerMs >= limits.timeLimitMs) return finish("time_limit");
    const marker = tokenizer.encodeText(CUT_MARKER);
    const next = chat.observation(
      limitTokens(tokenizer.encodeText(observation), limits.observationTokens, marker),
    );
    if (stream.length + next.length >= limits.contextTokens) return finish("context_limit");
    stream.appendGiven(next);
  }
  return finish("turn_limit");
}

/** A sandbox that was brought to its end from inside has no result; every other failure is the infrastructure's. */
function unlessBroken(error: unknown): undefined {
  if (error instanceof Failure && error.name === "SandboxBroken") return undefined;
  throw error;
}

/** A text file ends in a newline that is no part of what it says. */
function withoutFinalNewline(instruction: string): string {
  return instruction.endsWith("\n") ? instruction.slice(0, -1) : instruction;
}
