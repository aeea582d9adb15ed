// A driver: plays one group of a phase's episodes and ends. What is finished lies in the store when it ends, whatever
// ends it; the rest is played by the next driver of the group.
//   T1_PHASE, T1_EPISODES, T1_POLICY_VERSION    what to play: overrides of the task
//   T1_STORE_URL, T1_SANDBOXES, T1_IMAGES, T1_DEADLINE_SECONDS, T1_THREADS, and more on Fargate: environment.ts
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reportError } from "../../src/cli/exit-codes.ts";
import { imageServices } from "../../src/cli/image-options.ts";
import { openSandboxes, type SandboxKind } from "../../src/cli/sandbox-options.ts";
import { Failure } from "../../src/failure/errors.ts";
import type { ExitCode } from "../../src/failure/exit-code.ts";
import { currentProcess } from "../../src/files/process-identity.ts";
import { runGroup } from "../../src/rollout/run-group.ts";
import { type PhasePrefix, parsePhase, policyPrefix } from "../../src/run/keys.ts";
import { openStore } from "../../src/store/open-store.ts";
import { readContainerEnvironment } from "../environment.ts";
import { startHeartbeat } from "../heartbeat.ts";
import { DRIVER_ENVIRONMENT } from "./environment.ts";
import { openFargate } from "./fargate.ts";
import { openSampler } from "./sampler.ts";

/** Set once the driver is told to stop. */
let ending: Promise<void> | undefined;

async function main(): Promise<void> {
  startHeartbeat();
  const env = readContainerEnvironment(DRIVER_ENVIRONMENT);
  const opened = new AsyncDisposableStack();
  const workFolder = await mkdtemp(join(tmpdir(), "t1-driver-"));
  opened.defer(() => rm(workFolder, { recursive: true, force: true }));
  try {
    const store = await openStore(env.T1_STORE_URL);
    const phase = env.T1_PHASE as PhasePrefix;
    const { run } = parsePhase(phase);
    const version = env.T1_POLICY_VERSION;
    const { sandboxes, images } =
      env.T1_SANDBOXES === "fargate"
        ? await openFargate(store, phase)
        : await openHere(env.T1_SANDBOXES, env.T1_IMAGES);
    opened.use(sandboxes);
    const sampler = opened.use(
      await openSampler(
        store,
        { version, prefix: policyPrefix(run, version) },
        { url: env.T1_SAMPLER_URL, key: env.T1_SAMPLER_KEY, threads: env.T1_THREADS },
      ),
    );
    const interruption = endEarly(env.T1_DEADLINE_SECONDS, () => opened.disposeAsync());
    opened.defer(interruption.end);
    await runGroup(
      {
        phase,
        episodes: env.T1_EPISODES.split(",").map(Number),
        policyVersion: version,
        workFolder,
      },
      {
        store,
        sandboxes,
        images,
        sampler,
        interruption: interruption.signal,
        holder: { name: `driver of ${env.T1_EPISODES}`, process: currentProcess() },
        onEpisode: ({ episode, attempt, endReason, turnCount, failure }) =>
          console.log(JSON.stringify({ episode, attempt, endReason, turnCount, failure: failure?.name })),
      },
    );
  } finally {
    await opened.disposeAsync();
  }
}

/** Sandboxes of this machine. */
async function openHere(kind: SandboxKind, imagesFile: string | undefined) {
  const sandboxes = await openSandboxes(kind);
  return { sandboxes, images: imageServices(imagesFile, sandboxes) };
}

/**
 * Spot gives two minutes: sandboxes are ended, and what was not finished counts as not begun. Signals that follow the first
 * change nothing: a parent that is killed sends one for each of its threads.
 */
function endEarly(
  deadlineSeconds: number,
  dispose: () => Promise<void>,
): { readonly signal: AbortSignal; readonly end: () => void } {
  const interrupted: ExitCode = 75;
  const control = new AbortController();
  const { signal } = control;
  const leave = (why: string) => () => {
    if (signal.aborted) return;
    control.abort(new Failure("DriverLost", `interrupted: ${why}`, { retryable: true }));
    console.error(JSON.stringify({ message: "interrupted", why }));
    ending = dispose().finally(() => process.exit(interrupted));
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
  // What is under way breaks off while it is ended: not an error of its own.
  await ending;
  process.exit(reportError(error, text => process.stderr.write(text)));
}
