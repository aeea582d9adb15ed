// Processes as /proc shows them (proc_pid_stat(5), proc_pid_status(5)): who is there, who traces whom, and how to end one
// without ever hitting a later process of the same number.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hasCode } from "../files/file-errors.ts";

/** A number, and the start that tells a process from a later one of that number. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks between boot and its start (proc_pid_stat(5), field 22). */
  readonly started: string;
}

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly started: string;
  /** It has ended, and its parent has not waited for it yet. */
  readonly isDead: boolean;
}

/** All processes that this one can see. */
export function listProcesses(): readonly ProcessEntry[] {
  return readdirSync("/proc").flatMap(name => {
    const entry = /^\d+$/.test(name) ? readEntry(Number(name)) : undefined;
    return entry === undefined ? [] : [entry];
  });
}

/** @returns undefined when there is no such process, or only its remains */
export function startTime(pid: number): string | undefined {
  const entry = readEntry(pid);
  return entry === undefined || entry.isDead ? undefined : entry.started;
}

/** Whether some process has exactly this command line. */
export function hasProcess(argv: readonly string[]): boolean {
  const line = argv.map(word => `${word}\0`).join("");
  return listProcesses().some(({ pid }) => readText(`/proc/${pid}/cmdline`) === line);
}

/** @returns undefined for processes of others, and for those that are gone */
export function pidNamespace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

/** Sends SIGKILL, but never to another process that has the number now. */
export function endProcess({ pid, started }: ProcessId): void {
  if (startTime(pid) === started) sendSignal(pid, "SIGKILL");
}

/** @param target a process, or minus the leader of a process group. @returns whether anybody is there */
export function sendSignal(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    if (!hasCode(error, "ESRCH", "EPERM")) throw error; // no such signal
    return hasCode(error, "EPERM");
  }
}

/**
 * Ends whoever traces a process from inside the same sandbox. A traced process that has ended is reported to nobody else
 * until its tracer has waited for it or is gone.
 */
export function endTracer(pid: number): void {
  const tracer = Number(/^TracerPid:\s+(\d+)$/m.exec(readText(`/proc/${pid}/status`))?.[1] ?? 0);
  const [inside, started] = [pidNamespace(pid), startTime(tracer)];
  // A process may ask its parent to trace it, and the parent of a command is ours.
  if (inside === undefined || pidNamespace(tracer) !== inside || started === undefined) return;
  if (tracer !== process.pid) endProcess({ pid: tracer, started });
}

/** The same for the children of a process. */
export function endTracersOfChildren(parent: number): void {
  for (const entry of listProcesses()) if (entry.parent === parent) endTracer(entry.pid);
}

function readEntry(pid: number): ProcessEntry | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  // The name in parentheses may hold anything; the state follows it as field 3.
  const [state, parent, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const started = rest[17];
  if (started === undefined) return undefined; // it ended while we looked
  return { pid, parent: Number(parent), started, isDead: state === "Z" || state === "X" };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
