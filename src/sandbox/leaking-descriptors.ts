// File descriptors of this process that a started program would inherit. Node marks its own close-on-exec; what a
// parent left open above fd 15 and the pty masters of node-pty are not marked. An open folder would be a way out of
// a sandbox, and a pty master a way into another one's terminal.
import { openSync, readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;
const added = new Set<number>();
let inherited: readonly number[] | undefined;
let nothing: number | undefined;

/** Registers a descriptor that is open and not marked close-on-exec. @returns call it when the descriptor is closed */
export function addLeakingDescriptor(fd: number): () => void {
  added.add(fd);
  return () => void added.delete(fd);
}

export function leakingDescriptors(): readonly number[] {
  inherited ??= readInherited();
  return [...new Set([...inherited, ...added])];
}

/** The same `stdio` with every other descriptor that would leak replaced by /dev/null. */
export function maskLeaks<Entry>(stdio: readonly Entry[]): (Entry | number | "ignore")[] {
  const masked: (Entry | number | "ignore")[] = [...stdio];
  for (const fd of leakingDescriptors()) {
    if (fd < stdio.length) continue;
    nothing ??= openSync("/dev/null", "r+");
    while (masked.length <= fd) masked.push("ignore");
    masked[fd] = nothing;
  }
  return masked;
}

function readInherited(): readonly number[] {
  const open: number[] = [];
  for (const name of readdirSync("/proc/self/fdinfo")) {
    const fd = Number(name);
    if (fd > 2 && !isClosedOnExec(fd)) open.push(fd);
  }
  return open;
}

function isClosedOnExec(fd: number): boolean {
  try {
    const [, flags = "0"] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
  } catch {
    return true; // the one that listed the folder is closed again
  }
}
