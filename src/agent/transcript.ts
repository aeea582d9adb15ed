// `transcript.jsonl` of an attempt: what a person reads of an episode, one line per turn.
import { z } from "zod";

const Milliseconds = z.number().nonnegative();

/** How a command ended (sandbox.ts, ExecResult). */
const CommandEnd = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("exited"), exitCode: z.int() }),
  z.strictObject({ kind: z.literal("signalled"), signal: z.string() }),
  z.strictObject({ kind: z.literal("timed-out"), limitMs: Milliseconds }),
]);

export const TranscriptTurn = z.strictObject({
  turn: z.int().nonnegative(),
  /** Sampled tokens of the turn in its chunk: [start, end). */
  start: z.int().nonnegative(),
  end: z.int().nonnegative(),
  answer: z.string(),
  command: z.string().optional(),
  /** Text of the observation before it was cut to its limit of tokens. */
  observation: z.string().optional(),
  result: CommandEnd.optional(),
  samplerMs: Milliseconds,
  commandMs: Milliseconds.optional(),
});
export type TranscriptTurn = z.infer<typeof TranscriptTurn>;
