// Which process left a lock, a temporary file or a lease behind, and whether it still lives. A process id alone is
// reused; with its start time, its pid namespace and the boot of its machine it is not.
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import { hasCode } from "./file-errors.ts";

export const ProcessIdentity = z.strictObject({
  /** Letters that a file name could not hold are replaced, so that the whole identity may be one. */
  host: z.string().regex(/^[\w.-]+$/),
  pid: z.int().positive(),
  /** `/proc/sys/kernel/random/boot_id`; a kernel without /proc has none of the next three. */
  boot: z.string().min(1).optional(),
  pidNamespace: z.string().min(1).optional(),
  /** Clock ticks between boot and the start of the process, proc_pid_stat(5) field 22. */
  started: z.string().min(1).optional(),
});
export type ProcessIdentity = z.infer<typeof ProcessIdentity>;

/**
 * `rebooted`: a machine of the same name, but booted since; it is dead if names are unique where the store is shared.
 * `elsewhere`: another machine or container, whose processes cannot be seen from here.
 */
export type ProcessState = "alive" | "dead" | "rebooted" | "elsewhere";

let self: ProcessIdentity | undefined;

/** The identity of this process; the same value for its whole life. */
export function currentProcess(): ProcessIdentity {
  self ??= {
    host: hostname().replace(/[^\w.-]/g, "_") || "_",
    pid: process.pid,
    ...optional("boot", () => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    ...optional("pidNamespace", () => readlinkSync("/proc/self/ns/pid").replace(/\D/g, "")),
    ...optional("started", () => readStat(process.pid)?.started),
  };
  return self;
}

/** "dead" is certain; everything that is not is said to be alive or out of sight. */
export function processState(identity: ProcessIdentity): ProcessState {
  const here = currentProcess();
  // A host name may change under a running process, a boot and a pid namespace may not.
  const sameSight =
    here.boot === undefined || here.pidNamespace === undefined
      ? identity.host === here.host
      : identity.boot === here.boot && identity.pidNamespace === here.pidNamespace;
  if (sameSight) return isRunning(identity) ? "alive" : "dead";
  return identity.host === here.host && identity.boot !== here.boot ? "rebooted" : "elsewhere";
}

/** One line that may be a file name. */
export function formatProcess({
  host,
  pid,
  boot = "",
  pidNamespace = "",
  started = "",
}: ProcessIdentity): string {
  return [host, boot, pidNamespace, pid, started].join(",");
}

/** @returns undefined when the text is not one of `formatProcess` */
export function parseProcess(text: string): ProcessIdentity | undefined {
  const [host = "", boot = "", pidNamespace = "", pid = "", started = "", ...rest] = text.split(",");
  if (rest.length > 0 || !/^\d+$/.test(pid)) return undefined;
  const parsed = ProcessIdentity.safeParse({
    host,
    pid: Number(pid),
    ...(boot === "" ? {} : { boot }),
    ...(pidNamespace === "" ? {} : { pidNamespace }),
    ...(started === "" ? {} : { started }),
  });
  return parsed.data;
}

function isRunning({ pid, started }: ProcessIdentity): boolean {
  const stat = started === undefined ? undefined : readStat(pid);
  if (stat !== undefined) return stat.started === started && !stat.isZombie;
  // No /proc, or one that hides the processes of other users (hidepid): ask the kernel by signal 0.
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasCode(error, "ESRCH");
  }
}

function readStat(pid: number): { readonly started: string; readonly isZombie: boolean } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The name in parentheses may hold anything, so count fields from behind the last one: state is field 3.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, started] = [fields[0], fields[19]];
  return started === undefined ? undefined : { started, isZombie: state === "Z" || state === "X" };
}

/** `{ [name]: read() }`, or nothing where this kernel does not tell. */
function optional(
  name: "boot" | "pidNamespace" | "started",
  read: () => string | undefined,
): Partial<ProcessIdentity> {
  try {
    const value = read();
    return value === undefined ? {} : { [name]: value };
  } catch {
    return {};
  }
}
