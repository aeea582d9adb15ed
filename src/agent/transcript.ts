// `transcript.jsonl` of an attempt: an episode for people to read, one line per turn.
import { z } from "zod";

const Milliseconds = z.number().nonnegative();

/** How a command ended (sandbox.ts, ExecResult). */
const CommandEnd = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("exited"), exitCode: z.int() }),
  z.strictObject({ kind: z.literal("signalled"), signal: z.string() }),
  z.strictObject({ kind: z.literal("timed-out"), limitMs: Milliseconds }),
]);

/** Calls that hand a conversation which fills the context over to a new one (summary.ts). */
const SUMMARY_CALLS = ["summary", "questions", "answers", "short-summary"] as const;
export type SummaryCall = (typeof SUMMARY_CALLS)[number];

export const TranscriptTurn = z.strictObject({
  turn: z.int().nonnegative(),
  /** Sampled tokens of the turn in its chunk: [start, end). */
  start: z.int().nonnegative(),
  end: z.int().nonnegative(),
  /** Set on calls that made a summary of the work; they are no turns of the episode. */
  purpose: z.enum(SUMMARY_CALLS).optional(),
  /** On the first answer, the text that opened the conversation; on a call for a summary, the question. */
  prompt: z.string().optional(),
  answer: z.string(),
  command: z.string().optional(),
  /** Text of the observation before it was cut to its limit of tokens. */
  observation: z.string().optional(),
  result: CommandEnd.optional(),
  samplerMs: Milliseconds,
  commandMs: Milliseconds.optional(),
});
export type TranscriptTurn = z.infer<typeof TranscriptTurn>;
