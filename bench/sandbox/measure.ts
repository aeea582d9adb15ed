// Measures wall time, CPU time and memory, and sums them up.
import { readdirSync, readFileSync } from "node:fs";

/** sysconf(_SC_CLK_TCK), 100 on every Linux that Node runs on. */
const TICKS_PER_S = 100;

export async function timeMs(action: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await action();
  return performance.now() - startedAt;
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

/** CPU time of this process and of all its descendants that have ended. */
export function cpuMs(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0); // 14 to 17 of proc_pid_stat(5)
  return (ticks * 1000) / TICKS_PER_S;
}

/** Memory of all processes below one, each page shared by n counted as 1/n (PSS of proc_pid_smaps(5)), in bytes. */
export function memoryBelow(root: number): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {} // it has ended
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === root || isBelow(parent));
  };
  let bytes = 0;
  for (const pid of parents.keys()) if (isBelow(pid)) bytes += pss(pid);
  return bytes;
}

function pss(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    return 1024 * Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0);
  } catch {
    return 0;
  }
}
