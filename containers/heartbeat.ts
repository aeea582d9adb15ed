// Whether a program that only works, and serves nobody, is still at it: it touches a file, and the container's health
// command, which is this file, looks how old that is.
//   T1_HEARTBEAT    how the file's path begins; images say it. Elsewhere nobody looks, and /tmp is not ours alone
import { readlinkSync, statSync, writeFileSync } from "node:fs";

const EVERY_MS = 10_000;
/** A training step blocks its thread while it computes. */
const PATIENCE_MS = 300_000;

/** Until the process ends; keeps nothing alive. */
export function startHeartbeat(): void {
  const file = heartbeatFile();
  if (file === undefined) return;
  const beat = (): void => writeFileSync(file, `${process.pid}\n`);
  beat();
  setInterval(beat, EVERY_MS).unref();
}

/** A container has a mount namespace of its own, also where it shares /tmp with others, and its health command is in it. */
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
  process.exitCode = file !== undefined && ageMs(file) < PATIENCE_MS ? 0 : 1;
}
