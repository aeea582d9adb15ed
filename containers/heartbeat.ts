// Whether a program that only works, and serves nobody, is still at it: it touches a file, and the container's health
// command, which is this file, looks how old that is.
import { statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FILE = join(tmpdir(), "t1-heartbeat");
const EVERY_MS = 10_000;
/** A training step blocks its thread while it computes. */
const PATIENCE_MS = 300_000;

/** Until the process ends; keeps nothing alive. */
export function startHeartbeat(): void {
  const beat = (): void => writeFileSync(FILE, `${process.pid}\n`);
  beat();
  setInterval(beat, EVERY_MS).unref();
}

function ageMs(): number {
  return Date.now() - (statSync(FILE, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY);
}

if (import.meta.main) process.exitCode = ageMs() < PATIENCE_MS ? 0 : 1;
