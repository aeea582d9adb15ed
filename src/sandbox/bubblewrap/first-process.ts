// Process 1 of a sandbox, as this machine counts: a number, and the start that tells it from a later process of that
// number.
import { readFileSync, readlinkSync } from "node:fs";
import { hasCode } from "../../files/file-errors.ts";

export interface FirstProcess {
  readonly pid: number;
  /** Clock ticks between boot and its start (proc_pid_stat(5), field 22). */
  readonly started: string;
}

/** SIGKILL, but never to another process that has the number now. */
export function endProcess({ pid, started }: FirstProcess): void {
  if (startTime(pid) !== started) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}

/** @returns undefined when there is no such process, or only its remains */
export function startTime(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The name in parentheses may hold anything; the state follows it as field 3.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, started] = [fields[0], fields[19]];
  return state === "Z" || state === "X" ? undefined : started;
}

/** @returns undefined for processes of others, and for those that are gone */
export function pidNamespace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}
