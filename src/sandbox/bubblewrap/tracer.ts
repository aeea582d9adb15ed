// The end of a process that another one inside traces is told to nobody else until the tracer has buried it or is gone.
import { readdirSync, readFileSync } from "node:fs";
import { endProcess, pidNamespace, startTime } from "./first-process.ts";

/** Ends whoever inside traces a process of the same sandbox. */
export function endTracer(pid: number): void {
  const tracer = numberOf(pid, "TracerPid");
  const [inside, started] = [pidNamespace(pid), startTime(tracer)];
  // A process may ask its parent to be its tracer, and that of a command is the porter.
  if (inside === undefined || pidNamespace(tracer) !== inside || started === undefined) return;
  endProcess({ pid: tracer, started });
}

/** The same for the children of a process outside. */
export function endTracersOfChildren(parent: number): void {
  for (const pid of readdirSync("/proc").map(Number)) {
    if (Number.isInteger(pid) && numberOf(pid, "PPid") === parent) endTracer(pid);
  }
}

/** @returns 0 when there is none (proc_pid_status(5)) */
function numberOf(pid: number, field: "TracerPid" | "PPid"): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(new RegExp(`^${field}:\\s+(\\d+)$`, "m").exec(status)?.[1] ?? 0);
  } catch {
    return 0;
  }
}
