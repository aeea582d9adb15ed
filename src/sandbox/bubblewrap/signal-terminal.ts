// Signals to the program of a terminal, by way of the process that has entered the sandbox for it (spawner/enter.pl).
import { isDoneWithin } from "../done-within.ts";
import { endTracersOfChildren, sendSignal, startTime } from "../processes.ts";

/** From KILL until it is given up. */
const KILL_WAIT_MS = 5_000;

export function signalTerminal(pid: number, signal: "SIGHUP" | "SIGKILL"): void {
  // The one that has entered buries the program, and so is not killed itself.
  sendSignal(pid, signal === "SIGKILL" ? "SIGTERM" : signal);
  if (signal === "SIGKILL") void endTracersUntilGone(pid);
}

async function endTracersUntilGone(pid: number): Promise<void> {
  const isGone = (): boolean => {
    if (startTime(pid) === undefined) return true;
    endTracersOfChildren(pid);
    return false;
  };
  await isDoneWithin(isGone, KILL_WAIT_MS);
}
