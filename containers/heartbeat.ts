// Tells if a program that answers no requests still makes progress: it touches a file, and the container's health command
// (this file) checks the file's age.
//   T1_HEARTBEAT    start of the file's path, set by our images. Without it there is no heartbeat: /tmp may be shared
import { readlinkSync, statSync, writeFileSync } from "node:fs";

const EVERY_MS = 10_000;
/** A heartbeat may be this old, because a training step blocks its thread while it computes. */
const MAX_AGE_MS = 300_000;

/** Touches the file until the process ends, without keeping the process alive. */
export function startHeartbeat(): void {
  const file = heartbeatFile();
  if (file === undefined) return;
  const beat = (): void => writeFileSync(file, `${process.pid}\n`);
  beat();
  setInterval(beat, EVERY_MS).unref();
}

/** The path includes the mount namespace, which a container shares with its health command and nobody else. */
function heartbeatFile(): string | undefined {
  const { T1_HEARTBEAT: start } = process.env;
  return start === undefined
    ? undefined
    : `${start}-${readlinkSync("/proc/self/ns/mnt").replaceAll(/\D/g, "")}`;
}

function ageMs(file: string): number {
  return Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY);
}

if (import.meta.main) {
  const file = heartbeatFile();
  process.exitCode = file !== undefined && ageMs(file) < MAX_AGE_MS ? 0 : 1;
}
