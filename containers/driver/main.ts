// A driver: plays one shard of a phase's episodes and ends. Finished episodes lie in the store, whatever ends the driver;
// the next driver of the shard plays the rest.
// Its environment: DRIVER_JOB and DRIVER_SETTINGS of src/stages/jobs.ts, and on Fargate FARGATE_SETTINGS.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/failure/errors.ts";
import { FAILED_OR_STOPPED } from "../../src/failure/exit-code.ts";
import { reportError } from "../../src/failure/report-error.ts";
import { recordUnhandled } from "../../src/failure/unhandled.ts";
import { currentProcess } from "../../src/files/process-identity.ts";
import { imageServices } from "../../src/rollout/image-services.ts";
import { playShard } from "../../src/rollout/play-shard.ts";
import { parsePhase, policyPrefix } from "../../src/run/keys.ts";
import { openSandboxes, type SandboxKind } from "../../src/sandbox/open-sandboxes.ts";
import { DRIVER_JOB, DRIVER_SETTINGS } from "../../src/stages/jobs.ts";
import { openStore } from "../../src/store/open-store.ts";
import { startHeartbeat } from "../heartbeat.ts";
import { openFargate } from "./fargate.ts";
import { openSampler } from "./sampler.ts";

/** Set once the driver is told to stop. */
let ending: Promise<void> | undefined;

async function main(): Promise<void> {
  startHeartbeat();
  // One episode's error may not end the others.
  recordUnhandled(text => process.stderr.write(text));
  const job = DRIVER_JOB.fromEnvironment(process.env);
  const settings = DRIVER_SETTINGS.fromEnvironment(process.env);
  const opened = new AsyncDisposableStack();
  const workFolder = await mkdtemp(join(tmpdir(), "t1-driver-"));
  opened.defer(() => rm(workFolder, { recursive: true, force: true }));
  try {
    const store = await openStore(settings.storeUrl);
    const { run } = parsePhase(job.phase);
    const { policyVersion: version } = job;
    const { sandboxes, images } =
      settings.sandboxes === "fargate"
        ? await openFargate(store, job)
        : await openHere(settings.sandboxes, settings.imagesFile);
    opened.use(sandboxes);
    const sampler = opened.use(
      await openSampler(
        store,
        { version, prefix: policyPrefix(run, version) },
        { url: settings.samplerUrl, key: settings.samplerKey, threads: settings.threads },
      ),
    );
    const interruption = endEarly(settings.deadlineSeconds, () => opened.disposeAsync());
    opened.defer(interruption.end);
    await playShard(
      { ...job, workFolder },
      {
        store,
        sandboxes,
        images,
        sampler,
        interruption: interruption.signal,
        holder: { name: `driver of ${job.episodes.join(",")}`, process: currentProcess() },
        onEpisode: ({ episode, attempt, endReason, turnCount, failure }) =>
          console.log(JSON.stringify({ episode, attempt, endReason, turnCount, failure: failure?.name })),
      },
    );
  } finally {
    await opened.disposeAsync();
  }
}

/** Opens local sandboxes. */
async function openHere(kind: SandboxKind, imagesFile: string | undefined) {
  const sandboxes = await openSandboxes(kind);
  return { sandboxes, images: imageServices(imagesFile, sandboxes) };
}

/**
 * Stops the driver on a signal. Spot gives two minutes: the driver ends its sandboxes, and unfinished episodes count as not
 * begun. Later signals change nothing, because a parent that is killed sends one for each of its threads.
 */
function endEarly(
  deadlineSeconds: number,
  dispose: () => Promise<void>,
): { readonly signal: AbortSignal; readonly end: () => void } {
  const control = new AbortController();
  const { signal } = control;
  const leave = (why: string) => () => {
    if (signal.aborted) return;
    control.abort(new Failure("DriverLost", `interrupted: ${why}`, { retryable: true }));
    console.error(JSON.stringify({ message: "interrupted", why }));
    ending = dispose().finally(() => process.exit(FAILED_OR_STOPPED));
  };
  const onSignal = leave("SIGTERM");
  const timer = setTimeout(leave("deadline"), deadlineSeconds * 1000);
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  return {
    signal,
    end: () => {
      clearTimeout(timer);
      if (!signal.aborted) process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    },
  };
}

try {
  await main();
} catch (error) {
  // Work that fails while the driver stops it is no error of its own.
  await ending;
  process.exit(reportError(error, text => process.stderr.write(text)));
}
