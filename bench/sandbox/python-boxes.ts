// Sandboxes of other products, run by a Python that has them installed: a script of this folder drives them over lines of
// JSON.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Box, Contender } from "./contender.ts";

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** SWE-ReX, run locally (pip install swe-rex). @param python a command line that starts it */
export function sweRex(python: string): Contender {
  return pythonBoxes({ name: "SWE-ReX local", kind: "none" }, python, "swe_rex.py");
}

/** Harbor's Docker environment and the terminal of its Terminus 2 (pip install harbor). @param python as above */
export function harbor(python: string, image: string): Contender {
  return pythonBoxes({ name: "Harbor", kind: "docker", hasTurn: true }, python, "harbor_docker.py", image);
}

function pythonBoxes(
  { name, kind, hasTurn = false }: Pick<Contender, "name" | "kind"> & { readonly hasTurn?: boolean },
  python: string,
  script: string,
  ...args: readonly string[]
): Contender {
  // Pass the script as text, so that a Python inside another root needs no file of ours.
  const program = ["boxes.py", script]
    .map(file => readFileSync(new URL(file, import.meta.url), "utf8"))
    .join("\n");
  const [command = "", ...words] = python.split(" ");
  const child = spawn(command, [...words, "-c", program, ...args], { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<number, Waiting>();
  let [calls, boxes] = [0, 0];
  createInterface({ input: child.stdout }).on("line", line => {
    const { id, error } = JSON.parse(line) as { id: number; error?: string };
    const one = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) one?.resolve();
    else one?.reject(new Error(error));
  });
  child.once("exit", () => {
    for (const { reject } of waiting.values()) reject(new Error(`${script} has ended`));
  });
  const call = (box: number, what: "create" | "command" | "turn" | "stop"): Promise<void> =>
    new Promise((resolve, reject) => {
      const id = calls++;
      waiting.set(id, { resolve, reject });
      child.stdin.write(`${JSON.stringify({ id, box, do: what })}\n`);
    });
  return {
    name,
    kind,
    async create(): Promise<Box> {
      const box = boxes++;
      await call(box, "create");
      return {
        command: () => call(box, "command"),
        ...(hasTurn && { turn: () => call(box, "turn") }),
        stop: () => call(box, "stop"),
      };
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      child.kill("SIGKILL");
    },
  };
}
