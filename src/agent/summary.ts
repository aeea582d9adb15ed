// Hands a conversation that fills the context over to a new one: the policy summarises its work, asks itself what the
// summary leaves open, and answers from the old conversation. Source: Harbor 0.26, Terminus-2. Every call is sampled
// from the policy and recorded as a chunk of its own; what it wrote enters the next prompt as the ids it sampled.
import type { ChatFormat, Content } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import type { Generation } from "../sampler/sampler.ts";
import type { Chunk } from "../trajectory/chunk.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { TokenStream } from "../trajectory/stream.ts";
import { limitTokens } from "./limit-tokens.ts";
import type { Handover } from "./protocol.ts";
import type { SummaryCall, TranscriptTurn } from "./transcript.ts";

export interface SummarySettings {
  /** A summary is made when fewer tokens of the context are left before an observation. */
  readonly freeTokens: number;
  /** Sampled tokens of each call. */
  readonly answerTokens: number;
  /** Whether the calls are trained like the turns. */
  readonly train: boolean;
}

export interface SummaryServices {
  readonly chat: ChatFormat;
  readonly tokenizer: Tokenizer;
  /** Undefined for a model without experts. */
  readonly layout: RouteLayout | undefined;
  readonly contextTokens: number;
  /** Tokens of the screen that go into a prompt. */
  readonly screenTokens: number;
  /** Samples the next answer of a stream and appends it. */
  readonly ask: (stream: TokenStream, maxNewTokens: number, call: SummaryCall) => Promise<Asked>;
}

export interface Asked {
  readonly generation: Generation;
  readonly record: Omit<TranscriptTurn, "purpose" | "prompt">;
}

interface HandedOver {
  /** The new conversation, up to where its first answer begins. */
  readonly stream: TokenStream;
  /** Text of the message that it goes on from. */
  readonly prompt: string;
}

export interface SummaryRecord {
  readonly chunks: readonly Chunk[];
  readonly transcript: readonly TranscriptTurn[];
  /** Undefined when even what is kept does not leave `freeTokens`: another summary would not help. */
  readonly handedOver: HandedOver | undefined;
}

/** Between the kept head and tail of a long screen. */
const CUT_MARKER = "\n[...]\n";
/** Length of the screen that a short call sees. */
const SHORT_SCREEN_CHARACTERS = 1000;

/** @param opening the first message of the conversation, which stays */
export async function handOver(
  old: TokenStream,
  opening: string,
  { instruction, ...terminal }: Handover,
  settings: SummarySettings,
  services: SummaryServices,
): Promise<SummaryRecord> {
  const { chat, tokenizer, layout, contextTokens } = services;
  const chunks: Chunk[] = [];
  const transcript: TranscriptTurn[] = [];
  const screen = await terminal.screen();
  const shortScreen = chat.encode([...screen].slice(-SHORT_SCREEN_CHARACTERS).join(""));
  const marker = tokenizer.encodeText(CUT_MARKER);
  const longScreen = limitTokens(tokenizer.encodeText(screen), services.screenTokens, marker);

  /** @returns the ids of the answer without its end; undefined when it had no room for one */
  const call = async (stream: TokenStream, purpose: SummaryCall, prompt: Content) => {
    const maxNewTokens = Math.min(settings.answerTokens, contextTokens - stream.length);
    if (maxNewTokens <= 0) return undefined;
    const { generation, record } = await services.ask(stream, maxNewTokens, purpose);
    const chunk = stream.finish(layout);
    chunks.push(settings.train ? chunk : { ...chunk, untrained: true });
    transcript.push({ ...record, purpose, prompt: textOf(prompt, tokenizer) });
    return generation.finishReason === "stop" ? generation.tokens.subarray(0, -1) : undefined;
  };
  const reply = (stream: TokenStream, prompt: Content): void =>
    stream.appendGiven(chat.observation(chat.encode(prompt)));

  const byThreeCalls = async (): Promise<HandedOver | undefined> => {
    const turnCount = turnsThatLeaveRoom(old, contextTokens - callsTokens(instruction, settings, chat));
    if (turnCount === 0) return undefined;
    const history = old.fork(turnCount);
    const request = summaryRequest(instruction);
    reply(history, request);
    const summary = await call(history, "summary", request);
    if (summary === undefined) return undefined;

    const question = questionRequest(instruction, summary, Int32Array.from(longScreen));
    const fresh = new TokenStream();
    fresh.appendGiven(chat.opening(question));
    const questions = await call(fresh, "questions", question);
    if (questions === undefined) return undefined;

    const withSummary = history.fork(1);
    const demand = [ANSWER_REQUEST, questions];
    reply(withSummary, demand);
    const answers = await call(withSummary, "answers", demand);
    if (answers === undefined) return undefined;

    const stream = new TokenStream();
    stream.appendGiven(chat.opening(opening, question));
    stream.appendGiven([...questions, chat.endOfTurn]);
    const prompt = ["Here are the answers the other agent provided.\n\n", answers, HANDOFF_END];
    reply(stream, prompt);
    return { stream, prompt: textOf(prompt, tokenizer) };
  };

  const byShortCall = async (): Promise<HandedOver> => {
    const request = [
      `Briefly continue this task: ${instruction}\n\nCurrent state: `,
      Int32Array.from(shortScreen),
      "\n\nNext steps (2-3 sentences):",
    ];
    const fresh = new TokenStream();
    fresh.appendGiven(chat.opening(request));
    const summary = await call(fresh, "short-summary", request);
    const state = [...screen].slice(-SHORT_SCREEN_CHARACTERS).join("");
    const prompt: Content =
      summary === undefined ? terminal.reopen(state) : [terminal.reopen(state), "\n\nSummary: ", summary];
    const stream = new TokenStream();
    stream.appendGiven(chat.opening(prompt));
    return { stream, prompt: textOf(prompt, tokenizer) };
  };

  const next = (await byThreeCalls()) ?? (await byShortCall());
  const helps = contextTokens - next.stream.length >= settings.freeTokens;
  return { chunks, transcript, handedOver: helps ? next : undefined };
}

/** How many answers of a conversation can stay so that it ends within `room` tokens: the latest are left out first. */
function turnsThatLeaveRoom(stream: TokenStream, room: number): number {
  return stream.answerEnds.findLastIndex(end => end <= room) + 1;
}

/** Tokens that the calls may add to the old conversation. */
function callsTokens(instruction: string, { answerTokens }: SummarySettings, chat: ChatFormat): number {
  const given = [summaryRequest(instruction), ANSWER_REQUEST].map(
    request => chat.observation(chat.encode(request)).length,
  );
  return given.reduce((sum, count) => sum + count, 0) + 3 * answerTokens;
}

function textOf(content: Content, tokenizer: Tokenizer): string {
  const parts = typeof content === "string" ? [content] : content;
  return parts.map(part => (typeof part === "string" ? part : tokenizer.decode(part))).join("");
}

function summaryRequest(instruction: string): string {
  return `Another agent is going to take over from you, and it will see nothing of this conversation. Write it a full account of your work on the task so far.

Original Task: ${instruction}

Cover all of this:
1. **Major Actions Completed**: every command that mattered, and what it showed.
2. **Important Information Learned**: files and where they lie, settings, errors, the state the system is in.
3. **Challenging Problems Addressed**: what went wrong, and what you did about it.
4. **Current Status**: how far the task is, exactly, and what is left to do.

Leave nothing out that the next agent would have to find out again.`;
}

function questionRequest(instruction: string, summary: Int32Array, screen: Int32Array): Content {
  return [
    `You are taking over a task that another agent has worked on.

**Original Task:** ${instruction}

**Summary from Previous Agent:**
`,
    summary,
    "\n\n**Current Terminal Screen:**\n",
    screen,
    `

First ask the other agent at least five questions about the state of its work that the summary leaves open. You can ask only now: after its answers you are alone, so ask for everything you need.`,
  ];
}

const ANSWER_REQUEST =
  "The next agent has a few questions for you, please answer each of them one by one in detail:\n\n";

const HANDOFF_END =
  "\n\nContinue working on this task from where the previous agent left off. You can no longer ask questions. Please follow the spec to interact with the terminal.";
