// `t1` as a person has it: behind a terminal.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { spawn } from "@lydell/node-pty";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const PATIENCE_MS = 60_000;

/** Starts it behind a terminal of 90 columns. */
export function openBehindTerminal(words: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const pty = spawn(process.execPath, [MAIN, ...words], { name: "xterm-256color", cols: 90, rows: 30, env });
  let shown = "";
  let seenUntil = 0;
  pty.onData(data => {
    shown += data;
  });
  const ended = new Promise<number>(resolve => pty.onExit(({ exitCode }) => resolve(exitCode)));
  /** Waits for a text behind the one that was waited for before. */
  const until = async (text: string): Promise<void> => {
    const deadline = Date.now() + PATIENCE_MS;
    for (let at = -1; at === -1; ) {
      at = shown.indexOf(text, seenUntil);
      if (at !== -1) seenUntil = at + text.length;
      else if (Date.now() <= deadline) await sleep(10);
      else throw new Error(`no ${JSON.stringify(text)} in ${JSON.stringify(shown.slice(seenUntil))}`);
    }
  };
  return { pty, until, ended, shown: () => shown };
}
