// Runs a program of this folder as a process of its own, so that tests can race it and kill it; it does
// not outlive its test.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface Program {
  readonly child: ChildProcess;
  /** Lines that it has printed so far. */
  readonly lines: readonly string[];
  /** Resolves when it has ended and all its lines are there. */
  readonly ended: Promise<{ readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Resolves with the next line it prints. */
  nextLine(): Promise<string>;
}

/** @param shell shell text to run before it, e.g. `ulimit -n 40` */
export function startProgram(
  name: string,
  args: readonly string[],
  { shell = ":", uid }: { readonly shell?: string; readonly uid?: number } = {},
): Program {
  const file = fileURLToPath(new URL(name, import.meta.url));
  const child = spawn("sh", ["-c", `${shell}; exec "$@"`, "sh", process.execPath, file, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on("line", line => lines.push(line));
  const ended = Promise.all([once(child, "exit"), once(reader, "close")]).then(([[exitCode, signal]]) => ({
    exitCode,
    signal,
  }));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    child,
    lines,
    ended,
    nextLine: async () => (await once(reader, "line"))[0],
  };
}
