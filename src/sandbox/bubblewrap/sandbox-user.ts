// The host user that sandboxed programs run as. Inside they are root; outside that user must own nothing.
import { readFileSync } from "node:fs";

export interface SandboxUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * From the range that no distribution or container tool hands out (https://systemd.io/UIDS-GIDS/, "Unused").
 *
 * A sandbox of the machine's root must not map to root: without any capability, its programs could still write what
 * the kernel guards by the user id alone, /proc/sys/kernel/core_pattern first of all, and own the machine.
 */
const UNUSED_ID = 1_900_000_000;

/** @returns undefined for the user of this process itself */
export function sandboxUser(): SandboxUser | undefined {
  return isMachineRoot() ? { uid: UNUSED_ID, gid: UNUSED_ID } : undefined;
}

/** Root of a user namespace (rootless containers) is an ordinary user to the kernel. */
function isMachineRoot(): boolean {
  if (process.getuid?.() !== 0) return false;
  // user_namespaces(7): the initial namespace maps every id to itself.
  return /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "utf8"));
}
