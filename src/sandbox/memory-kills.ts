// How often the kernel has killed for want of memory.
import { readFileSync } from "node:fs";

const OWN_COUNT = ownCount();

/**
 * On this whole machine, counted since boot, for the limit of some container too (mm/oom_kill.c, OOM_KILL); 0 where it is
 * not told.
 */
export function memoryKills(): number {
  return readCount("/proc/vmstat") ?? 0;
}

/**
 * Processes of this one's control group, whatever they were killed for: those that it starts are in it, other containers
 * are not. Where that is not told, those of the machine.
 */
export function ownMemoryKills(): number {
  return (OWN_COUNT === undefined ? undefined : readCount(OWN_COUNT)) ?? memoryKills();
}

/** @returns where the count of this process's group is told (cgroups(7)): memory.events of the second version, or of the first */
function ownCount(): string | undefined {
  const groups = read("/proc/self/cgroup") ?? "";
  const second = /^0::(.*)$/m.exec(groups)?.[1];
  const first = /^\d+:(?:.*,)?memory(?:,.*)?:(.*)$/m.exec(groups)?.[1];
  const candidates = [
    ...(first === undefined ? [] : [`/sys/fs/cgroup/memory${first}/memory.oom_control`]),
    ...(second === undefined ? [] : [`/sys/fs/cgroup${second}/memory.events`]),
  ];
  return candidates.find(path => readCount(path) !== undefined);
}

function readCount(path: string): number | undefined {
  const [, count] = /^oom_kill (\d+)$/m.exec(read(path) ?? "") ?? [];
  return count === undefined ? undefined : Number(count);
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
