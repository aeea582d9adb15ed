// How often this machine's kernel has killed for want of memory.
import { readFileSync } from "node:fs";

/** Counted since boot, those of memory cgroups included (mm/oom_kill.c, OOM_KILL); 0 where it is not told. */
export function memoryKills(): number {
  try {
    const [, count] = /^oom_kill (\d+)$/m.exec(readFileSync("/proc/vmstat", "utf8")) ?? [];
    return Number(count ?? 0);
  } catch {
    return 0;
  }
}
