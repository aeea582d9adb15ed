// How a policy and a sandbox talk: what the policy is told first, what its answers mean, what it is told then. Text
// only; the episode loop (episode.ts) turns it into tokens, once.
import type { ToolDefinition } from "../model/chat-format.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { TranscriptTurn } from "./transcript.ts";

/** Limits that a protocol keeps by itself; the loop keeps turns, context and time. */
export interface ProtocolLimits {
  readonly commandTimeoutMs: number;
  /** Kept output of one command. */
  readonly outputBytes: number;
}

export interface Protocol {
  /** Functions that the chat template describes to the policy. */
  readonly tools?: readonly ToolDefinition[];
  /** Prepares the sandbox for one episode. @throws Failure SandboxLost */
  open(sandbox: Sandbox, instruction: string, limits: ProtocolLimits): Promise<Conversation>;
}

/** The state of one episode: a terminal, a question that waits for its answer. */
export interface Conversation extends AsyncDisposable {
  /** The first user message. */
  readonly opening: string;
  /**
   * Does what a whole answer asks for. Whatever the answer says is an outcome, never an error.
   *
   * @throws Failure SandboxLost
   */
  play(answer: string, at: PlayOptions): Promise<Played>;
  /** The parts that a summary of the work needs; a protocol without them cannot be compacted. */
  readonly handover?: Handover;
}

export interface PlayOptions {
  readonly turn: number;
  /** Time left to the agent; at 0 and below nothing is run any more. */
  readonly leftMs: number;
  readonly signal?: AbortSignal;
}

export type Played =
  | {
      readonly kind: "ended";
      readonly reason: "completed" | "agent_error" | "time_limit";
      readonly log: TurnLog;
    }
  /** `user`: one message. `tool`: one response per call, in their order. */
  | { readonly kind: "observed"; readonly role: "user"; readonly text: string; readonly log: TurnLog }
  | {
      readonly kind: "observed";
      readonly role: "tool";
      readonly texts: readonly string[];
      readonly log: TurnLog;
    };

/** Fields of a turn that the transcript keeps beside the answer. */
export type TurnLog = Pick<TranscriptTurn, "command" | "observation" | "result" | "commandMs">;

export interface Handover {
  readonly instruction: string;
  /** The screen of the terminal now. */
  screen(): Promise<string>;
  /** The first user message of a conversation that begins at such a screen. */
  reopen(screen: string): string;
}
