// SWE-ReX on this machine, by a Python that has it (pip install swe-rex).
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Box, Contender } from "./contender.ts";

const SCRIPT = fileURLToPath(new URL("swe_rex.py", import.meta.url));

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export function sweRex(python: string): Contender {
  const child = spawn(python, [SCRIPT], { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<number, Waiting>();
  let [calls, boxes] = [0, 0];
  createInterface({ input: child.stdout }).on("line", line => {
    if (!line.startsWith("{")) return;
    const { id, error } = JSON.parse(line) as { id: number; error?: string };
    const one = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) one?.resolve();
    else one?.reject(new Error(error));
  });
  const call = (box: number, what: "create" | "command" | "stop"): Promise<void> =>
    new Promise((resolve, reject) => {
      const id = calls++;
      waiting.set(id, { resolve, reject });
      child.stdin.write(`${JSON.stringify({ id, box, do: what })}\n`);
    });
  return {
    name: "SWE-ReX local",
    kind: "none",
    async create(): Promise<Box> {
      const box = boxes++;
      await call(box, "create");
      return { command: () => call(box, "command"), stop: () => call(box, "stop") };
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      child.kill("SIGKILL");
    },
  };
}
