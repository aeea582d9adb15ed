// The protocol of Harbor's Terminus-2: a reply holds keystrokes and how long to wait after each; the policy then sees
// what the terminal shows. Done is said twice.
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox, Terminal } from "../../sandbox/sandbox.ts";
import type { Conversation, Handover, Played, PlayOptions, Protocol, TurnLog } from "../protocol.ts";
import { withoutReasoning } from "../reasoning.ts";
import { limitOutput } from "./limit-output.ts";
import { OutputReader, screenText } from "./new-output.ts";
import type { Keystrokes } from "./parsed-reply.ts";
import {
  completionQuestion,
  errorMessage,
  firstMessage,
  outputMessage,
  type ReplyFormat,
} from "./reply-format.ts";
import { keyboardInput } from "./tmux-keys.ts";

/** Harbor's tmux window. Its history is as long as tmux keeps by default: Harbor's own setting comes too late to hold. */
const TERMINAL = { columns: 160, rows: 40, historyLines: 2000 };
/** How long a shell may take to show its prompt. */
const PROMPT_PATIENCE_MS = 3000;
const PROMPT_POLL_MS = 20;

export function terminusProtocol(format: ReplyFormat): Protocol {
  return {
    async open(sandbox: Sandbox, instruction: string) {
      const terminal = await sandbox.terminal(TERMINAL);
      try {
        await untilPrompt(terminal);
        const reader = new OutputReader();
        const state = limitOutput(reader.read(await terminal.view()));
        return new TerminusConversation(format, instruction, terminal, reader, state);
      } catch (error) {
        await terminal[Symbol.asyncDispose]();
        throw error;
      }
    },
  };
}

async function untilPrompt(terminal: Terminal): Promise<void> {
  const until = performance.now() + PROMPT_PATIENCE_MS;
  while (performance.now() < until && (await terminal.screen()).every(line => line === ""))
    await sleep(PROMPT_POLL_MS);
}

class TerminusConversation implements Conversation {
  readonly opening: string;
  readonly handover: Handover;
  readonly #format: ReplyFormat;
  readonly #terminal: Terminal;
  readonly #reader: OutputReader;
  #isClosed = false;
  /** Done was said once and waits to be said again; a reply that cannot be read changes nothing. */
  #isPending = false;

  constructor(
    format: ReplyFormat,
    instruction: string,
    terminal: Terminal,
    reader: OutputReader,
    state: string,
  ) {
    this.#format = format;
    this.#terminal = terminal;
    this.#reader = reader;
    this.opening = firstMessage(format, instruction, state);
    this.handover = {
      instruction,
      screen: async () => screenText(await terminal.view()),
      reopen: screen => firstMessage(format, instruction, `Current Terminal Screen:\n${screen}`),
    };
    void terminal.closed.then(() => {
      this.#isClosed = true;
    });
  }

  async play(answer: string, { leftMs, signal }: PlayOptions): Promise<Played> {
    const { commands, isComplete, error, warnings } = this.#format.parse(withoutReasoning(answer));
    if (error !== undefined) {
      const text = errorMessage(this.#format, error, warnings);
      return { kind: "observed", role: "user", text, log: { observation: text } };
    }
    const isConfirmed = isComplete && this.#isPending;
    this.#isPending = isComplete;
    if (leftMs <= 0) return { kind: "ended", reason: isConfirmed ? "completed" : "time_limit", log: {} };

    const startedAt = performance.now();
    const untaken = await this.#send(commands, startedAt + leftMs, signal);
    const output = limitOutput(this.#reader.read(await this.#terminal.view()));
    const text = isComplete
      ? isConfirmed
        ? output
        : completionQuestion(this.#format, output)
      : outputMessage(output, [...warnings, ...untaken]);
    const log: TurnLog = { observation: text, commandMs: performance.now() - startedAt };
    if (isConfirmed) return { kind: "ended", reason: "completed", log };
    if (this.#isClosed) return { kind: "ended", reason: "agent_error", log };
    return { kind: "observed", role: "user", text, log };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#terminal[Symbol.asyncDispose]();
  }

  /**
   * Sends the commands in their order, each with its wait, which counts from when its keys are sent.
   *
   * @param until performance.now() at which the time of the episode is over
   * @returns a warning for each command whose keys were not all taken
   */
  async #send(
    commands: readonly Keystrokes[],
    until: number,
    signal: AbortSignal | undefined,
  ): Promise<string[]> {
    const warnings: string[] = [];
    for (const [index, { keys, durationSec }] of commands.entries()) {
      const sentAt = performance.now();
      if (this.#isClosed || signal?.aborted || sentAt >= until) break;
      const bytes = await this.#toBytes(keys);
      const taken = bytes.length === 0 ? 0 : await this.#terminal.send(bytes);
      if (taken < bytes.length && !this.#isClosed)
        warnings.push(
          `Command ${index + 1}: only ${taken} of ${bytes.length} bytes were taken; what runs in the terminal does not read them`,
        );
      await this.#wait(Math.min(sentAt + durationSec * 1000, until) - performance.now(), signal);
    }
    return warnings;
  }

  async #toBytes(keys: string): Promise<Uint8Array> {
    // Only the name of a key depends on what the program asked of the keyboard, and names are short.
    const asked = keys.length < 20 ? (await this.#terminal.view()).applicationCursorKeys : false;
    return Buffer.from(keyboardInput(keys, asked));
  }

  /** Ends early only when nothing more can come. */
  async #wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    if (milliseconds <= 0) return;
    const stop = new AbortController();
    const ends = AbortSignal.any(signal === undefined ? [stop.signal] : [stop.signal, signal]);
    const timer = sleep(milliseconds, undefined, { signal: ends }).catch(() => undefined);
    await Promise.race([timer, this.#terminal.closed]);
    stop.abort();
  }
}
