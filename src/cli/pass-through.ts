// A person's terminal in front of a sandbox's: every key goes inside, Ctrl-C too, and what is printed inside comes out.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../failure/errors.ts";
import type { Terminal } from "../sandbox/sandbox.ts";
import { QuestionFilter } from "./terminal-questions.ts";

export interface PersonsTerminal {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
}

/** From one look at what was printed to the next: soon after there was something, later when nothing happens. */
const LOOK_MS = { least: 4, most: 40 };

/**
 * Resolves when the shell inside has ended. The person's terminal is then as it was before.
 *
 * @throws Failure when the sandbox is lost, RunStopped when the person's terminal is gone
 */
export async function passThrough(terminal: Terminal, { input, output }: PersonsTerminal): Promise<void> {
  let isOver = false;
  let gone: Failure | undefined;
  const filter = new QuestionFilter();
  let sending: Promise<unknown> = Promise.resolve();
  const onKeys = (keys: Uint8Array): void => {
    sending = sending.then(() => terminal.send(keys)).catch(() => undefined); // reading finds out too
  };
  const onResize = (): void => {
    terminal.resize(output.columns, output.rows).catch(() => undefined); // as above
  };
  const onGone = (): void => {
    gone = new Failure("RunStopped", "the terminal is gone", { retryable: false });
    isOver = true;
  };
  const restore = (): void => {
    input.setRawMode?.(false);
  };
  const signals = ["SIGHUP", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, onGone);
  process.on("exit", restore);
  input.setRawMode?.(true);
  input.on("data", onKeys).on("end", onGone).resume();
  output.on("resize", onResize);
  const closed = terminal.closed.then(() => {
    isOver = true;
  });
  try {
    for (let waitMs = LOOK_MS.least; !isOver; waitMs = Math.min(2 * waitMs, LOOK_MS.most)) {
      if (await show(terminal, filter, output)) waitMs = LOOK_MS.least;
      await Promise.race([closed, sleep(waitMs)]);
    }
    if (gone !== undefined) throw gone;
    await show(terminal, filter, output);
  } finally {
    output.off("resize", onResize);
    input.off("data", onKeys).off("end", onGone).pause();
    restore();
    process.off("exit", restore);
    for (const signal of signals) process.off(signal, onGone);
  }
}

/** @returns whether there was anything */
async function show(
  terminal: Terminal,
  filter: QuestionFilter,
  output: NodeJS.WriteStream,
): Promise<boolean> {
  const { head, tail, omittedBytes } = await terminal.readNew();
  if (head.length + tail.length === 0) return false;
  const gap = omittedBytes === 0 ? "" : `\r\n[… ${omittedBytes} bytes …]\r\n`;
  // As latin1, in which every byte is one character.
  const text = `${Buffer.from(head).toString("latin1")}${Buffer.from(gap).toString("latin1")}${Buffer.from(tail).toString("latin1")}`;
  output.write(Buffer.from(filter.pass(text), "latin1"));
  return true;
}
