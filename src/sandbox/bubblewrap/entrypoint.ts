// An image's ENTRYPOINT, run as a container does whose command waits.
import { randomUUID } from "node:crypto";

/** An entrypoint that never runs its command is waited for as long. */
const WAIT_MS = 10_000;

/**
 * Returns when its command runs, when the entrypoint has ended without it, or after a time: the sandbox is there in any
 * case.
 */
export async function entrypointStarted(
  words: readonly string[],
  run: (argv: readonly string[], onStdout: (chunk: Uint8Array) => void) => Promise<unknown>,
): Promise<void> {
  const sign = `t1-${randomUUID()}`;
  const started = Promise.withResolvers<void>();
  let printed = "";
  const running = run([...words, "/bin/sh", "-c", `echo ${sign}; exec sleep infinity`], chunk => {
    printed = (printed + Buffer.from(chunk).toString("latin1")).slice(-4096);
    if (printed.includes(sign)) started.resolve();
  });
  const waiting = setTimeout(started.resolve, WAIT_MS);
  running.then(() => started.resolve(), started.resolve);
  await started.promise;
  clearTimeout(waiting);
}
