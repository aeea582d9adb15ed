// Ends every process of the sandbox but the daemon, however they fork and fight back.
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../files/file-errors.ts";
import { listProcesses } from "./processes.ts";

const ROUNDS = 400;
const PAUSE_MS = 5;

/** @returns whether nobody is left */
export async function killEverything(reapOrphans: () => void): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    killAll();
    reapOrphans();
    if (living().length === 0) return true;
    await sleep(PAUSE_MS);
  }
  return false;
}

/**
 * As process 1 all of them by one call of kill(2), so that none can fork out of it. Otherwise the daemon sees processes
 * that are not the sandbox's: then only its descendants, which it adopts.
 */
function killAll(): void {
  const targets = process.pid === 1 ? [-1] : living();
  for (const pid of targets) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if (!hasCode(error, "ESRCH")) throw error;
    }
  }
}

function living(): readonly number[] {
  const entries = listProcesses();
  const parents = new Map(entries.map(({ pid, parent }) => [pid, parent]));
  const isOurs = (pid: number): boolean => {
    if (process.pid === 1) return pid !== 1;
    for (let at = parents.get(pid); at !== undefined && at !== 0; at = parents.get(at))
      if (at === process.pid) return true;
    return false;
  };
  return entries.filter(({ pid, isDead }) => !isDead && isOurs(pid)).map(({ pid }) => pid);
}
