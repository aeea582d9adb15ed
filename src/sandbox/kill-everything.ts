// Ends every process of a sandbox but the one that holds it, however they fork and fight back.
import { setTimeout as sleep } from "node:timers/promises";
import { endProcess, type ProcessId } from "./processes.ts";

/** Together with the pauses 1 s, or longer when a try itself is slow. */
const ROUNDS = 200;
const PAUSE_MS = 5;

export interface SandboxProcesses {
  /**
   * Tries to kill all of them at once, so that none can fork out of it.
   *
   * @returns who was left a moment later; `unknown` when nobody can say
   */
  killAll(): Promise<"nobody" | "somebody" | "unknown">;
  /** Those that live: what has ended and waits for its parent can do nothing any more. */
  living(): readonly ProcessId[];
  /** The sandbox itself has ended, and everything with it. */
  isGone(): boolean;
}

/** @returns whether nobody is left */
export async function killEverything({ killAll, living, isGone }: SandboxProcesses): Promise<boolean> {
  for (let round = 0; round < ROUNDS && !isGone(); round++) {
    const left = await killAll();
    if (left === "nobody") return true;
    const processes = living();
    if (left === "somebody" && processes.length === 0) return true;
    // One by one too: a process that does nothing but kill or stop whatever appears may be faster than our killer.
    for (const process of processes) endProcess(process);
    await sleep(PAUSE_MS);
  }
  return isGone();
}
