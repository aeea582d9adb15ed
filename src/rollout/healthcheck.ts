// Waits until a sandbox is what its task needs before anyone works in it.
// Reference: https://docs.docker.com/reference/dockerfile/#healthcheck
import { setTimeout as sleep } from "node:timers/promises";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Healthcheck } from "../task/task.ts";

const OUTPUT_BYTES = 2000;

/** @returns undefined when it is healthy, else what the last check said */
export async function awaitHealthy(
  sandbox: Sandbox,
  { command, intervalMs, timeoutMs, startPeriodMs, startIntervalMs, retries }: Healthcheck,
): Promise<string | undefined> {
  const startedAt = performance.now();
  for (let failures = 0; ; ) {
    const { end, stdout, stderr } = await sandbox.exec(command, {
      timeoutMs,
      outputLimitBytes: OUTPUT_BYTES,
    });
    if (end.kind === "exited" && end.exitCode === 0) return undefined;
    // Failures count from the end of the start period on.
    const isStarting = performance.now() - startedAt < startPeriodMs;
    if (!isStarting && ++failures >= Math.max(1, retries)) {
      const said = `${capturedText(stdout)}${capturedText(stderr)}`.trim();
      return `${command}: ${said === "" ? JSON.stringify(end) : said}`;
    }
    await sleep(isStarting ? startIntervalMs : intervalMs);
  }
}
