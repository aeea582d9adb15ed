// The owner of a sandbox: the driver process that created or adopted it, for as long as it lives.
import { Failure } from "../../failure/errors.ts";
import { currentProcess, formatProcess, parseProcess, processState } from "../../files/process-identity.ts";
import { nameOf } from "../../sandboxd/leased-sandbox.ts";
import type { Lease } from "../sandbox.ts";
import type { Owner, SandboxRecord } from "./sandbox-folder.ts";

export function thisDriver(): string {
  return formatProcess(currentProcess());
}

export function ownerOf({ deadlineMs }: Lease): Owner {
  return { driver: thisDriver(), deadlineMs };
}

/** Its driver is dead, or its time is over. A driver that cannot be seen from here has until the deadline. */
export function isLeft(driver: string | undefined, deadlineMs: number, now: number): boolean {
  if (deadlineMs <= now) return true;
  const identity = parseProcess(driver ?? "");
  const state = identity === undefined ? "elsewhere" : processState(identity);
  return state === "dead" || state === "rebooted";
}

/** @throws Failure SandboxUnavailable while another driver has it */
export function assertUnowned({ driver, lease }: SandboxRecord): void {
  const identity = parseProcess(driver);
  if (driver === thisDriver() || identity === undefined || processState(identity) !== "alive") return;
  throw new Failure(
    "SandboxUnavailable",
    `${nameOf(lease)} belongs to process ${identity.pid}, which is alive`,
    {
      retryable: true,
    },
  );
}
