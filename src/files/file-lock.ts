// A lock between processes of one machine, for the short time between comparing an object and replacing it. It is a
// symbolic link that names its holder: made with its content in one call, so nobody can see half a lock.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, formatErrorText } from "../failure/errors.ts";
import { readLink, symlinkIfFree, unlinkIfPresent } from "./file-steps.ts";
import { type Links, releaseLink, tryTakeLink } from "./link-lock.ts";
import {
  currentProcess,
  formatProcess,
  type ProcessIdentity,
  parseProcess,
  processState,
} from "./process-identity.ts";

const LONGEST_PAUSE_MS = 10;

const LINKS: Links = { create: symlinkIfFree, read: readLink, remove: unlinkIfPresent, isDead };

/**
 * Waits until the lock is free, holds it while `action` runs, and frees it. A lock whose holder died is free.
 *
 * @param path of the lock, in a folder that exists
 * @throws Failure StoreUnavailable (retryable) when somebody else keeps it for `waitMs`
 */
export async function withFileLock<Result>(
  path: string,
  { waitMs }: { readonly waitMs: number },
  action: () => Promise<Result>,
): Promise<Result> {
  const holder = `${formatProcess(currentProcess())},${randomUUID()}`;
  const deadline = performance.now() + waitMs;
  for (
    let pauseMs = 1;
    !(await tryTakeLink(LINKS, path, holder));
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
  ) {
    if (performance.now() > deadline) throw lockedTooLong(path, await readLink(path), waitMs);
    await sleep(pauseMs);
  }
  try {
    return await action();
  } finally {
    await releaseLink(LINKS, path, holder);
  }
}

function isDead(holder: string): boolean {
  const identity = processOf(holder);
  if (identity === undefined) return false;
  const state = processState(identity);
  // A folder store serves one machine, so a lock from before the last boot of a machine of this name has no owner.
  return state === "dead" || state === "rebooted";
}

function processOf(holder: string): ProcessIdentity | undefined {
  return parseProcess(holder.slice(0, holder.lastIndexOf(",")));
}

function lockedTooLong(path: string, holder: string | undefined, waitMs: number): Failure {
  const identity = processOf(holder ?? "");
  const owner = identity === undefined ? "an unknown process" : `process ${identity.pid} on ${identity.host}`;
  const text = formatErrorText({
    what: "locked for too long",
    where: path,
    expected: `expected the lock to be freed within ${waitMs} ms, but ${owner} holds it`,
    fix: "if that process no longer runs, remove the lock; if it is stopped, let it go on",
  });
  return new Failure("StoreUnavailable", text, { retryable: true });
}
