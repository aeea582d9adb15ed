// Ends every process of a sandbox but its first, however they fork and fight back.
import { readdirSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../failure/errors.ts";
import type { Host } from "./host.ts";
import { runHostProcess } from "./host-process.ts";
import { endProcess, type Init, startTime } from "./init.ts";

const ROUNDS = 200;
/** Rounds that leave the rest to time: a killed process takes a moment until it is gone. */
const PATIENT_ROUNDS = 3;
const PAUSE_MS = 5;

/**
 * One call of kill(2) for all of them, so none can fork out of it; then it looks whether anybody is there. The shell is
 * this machine's, with this machine's files: nothing that the agent wrote is run.
 */
const KILL_ALL = "kill -9 -1 2>/dev/null; ! kill -0 -1 2>/dev/null";
/** Its exit codes; any other says that it did not come so far. */
const NOBODY = 0;
const SOMEBODY = 1;

/**
 * @param isSettled whether the driver has seen the end of every command it started
 * @throws Failure SandboxLost when something cannot be ended
 */
export async function killEverythingInside(init: Init, host: Host, isSettled: () => boolean): Promise<void> {
  const { nsenter, sh } = host.tools;
  const enter = [nsenter, "--target", `${init.pid}`, "--user", "--pid", "--preserve-credentials", "--"];
  for (let round = 0; round < ROUNDS && init.isAlive(); round++) {
    const { exitCode } = await runHostProcess([...enter, sh, "-c", KILL_ALL], host);
    if (exitCode === NOBODY && isSettled()) return;
    if (round >= PATIENT_ROUNDS) {
      // A process that does nothing but kill whatever appears is faster than our shell; from outside nobody sees us.
      // And what is dead but not reaped counts as somebody inside: after a kill of all, only the living matter.
      const living = findInside(init);
      for (const process of living) endProcess(process);
      if (exitCode === SOMEBODY && living.length === 0 && isSettled()) return;
    }
    await sleep(PAUSE_MS);
  }
  throw new Failure("SandboxLost", `processes inside of sandbox process ${init.pid} cannot be ended`, {
    retryable: true,
  });
}

/** Processes of the sandbox but its first, those that are dead and not reaped left out. */
function findInside(init: Init): readonly { readonly pid: number; readonly started: string }[] {
  const namespace = pidNamespace(init.pid);
  if (namespace === undefined) return []; // gone: every namespace that cannot be read would look like its own
  return readdirSync("/proc").flatMap(name => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === init.pid || pidNamespace(pid) !== namespace) return [];
    const started = startTime(pid);
    return started === undefined ? [] : [{ pid, started }];
  });
}

/** @returns undefined for processes of others, and for those that are gone */
function pidNamespace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}
