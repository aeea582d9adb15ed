// Processes of the sandbox, as /proc tells them.
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly isDead: boolean;
}

export function listProcesses(): readonly ProcessEntry[] {
  return readdirSync("/proc").flatMap(name => {
    if (!/^\d+$/.test(name)) return [];
    const stat = readText(`/proc/${name}/stat`);
    // The name in parentheses may hold anything; state and parent follow it (proc_pid_stat(5)).
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (parent === undefined) return []; // ended while we looked
    return [{ pid: Number(name), parent: Number(parent), isDead: state === "Z" || state === "X" }];
  });
}

/** Whether some process has exactly this command line. */
export function hasProcess(argv: readonly string[]): boolean {
  const line = argv.map(word => `${word}\0`).join("");
  return listProcesses().some(({ pid }) => readText(`/proc/${pid}/cmdline`) === line);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
