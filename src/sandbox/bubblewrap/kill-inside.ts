// Ends every process of a sandbox but its first, however they fork and fight back.
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../failure/errors.ts";
import { endProcess, type FirstProcess, pidNamespace, startTime } from "./first-process.ts";
import type { Porter } from "./porter.ts";

const ROUNDS = 200;
const PAUSE_MS = 5;
/** The process inside that kills all others takes some ms; one that others stop again and again takes for ever. */
const KILLER_PATIENCE_MS = 250;

/** @throws Failure SandboxBroken when something cannot be ended */
export async function killEverythingInside(porter: Porter): Promise<void> {
  const first = await porter.first;
  for (let round = 0; round < ROUNDS && !porter.isGone; round++) {
    // One call of kill(2) for all of them, by a process inside.
    const left = await Promise.race([porter.killAll(), sleep(KILLER_PATIENCE_MS, "unknown" as const)]);
    if (left === "nobody") return;
    // A process that does nothing but kill or stop whatever appears is faster; from outside nobody sees us. And what is
    // dead but not reaped counts as somebody inside: after a kill of all, only the living matter.
    const living = findInside(first);
    if (left === "somebody" && living.length === 0) return;
    for (const process of living) endProcess(process);
    await sleep(PAUSE_MS);
  }
  if (porter.isGone) return; // whoever asked for it sees that the sandbox is gone
  throw new Failure("SandboxBroken", `processes inside of sandbox process ${first.pid} cannot be ended`, {
    retryable: false,
  });
}

/** Processes of the sandbox but its first, those that are dead and not reaped left out. */
function findInside(first: FirstProcess): readonly FirstProcess[] {
  const namespace = pidNamespace(first.pid);
  if (namespace === undefined) return []; // gone: every namespace that cannot be read would look like its own
  return readdirSync("/proc").flatMap(name => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === first.pid || pidNamespace(pid) !== namespace) return [];
    const started = startTime(pid);
    return started === undefined ? [] : [{ pid, started }];
  });
}
