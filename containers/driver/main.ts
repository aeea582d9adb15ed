// A driver: plays one group of a phase's episodes and ends. What is finished lies in the store when it ends, whatever
// ends it; the rest is played by the next driver of the group.
//   T1_PHASE, T1_EPISODES, T1_POLICY_VERSION    what to play: overrides of the task
//   T1_STORE_URL, T1_SANDBOXES, T1_IMAGES, T1_DEADLINE_SECONDS, T1_THREADS
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { reportError } from "../../src/cli/exit-codes.ts";
import { imageServices } from "../../src/cli/image-options.ts";
import { InputError } from "../../src/failure/errors.ts";
import type { ExitCode } from "../../src/failure/exit-code.ts";
import { runGroup } from "../../src/pipeline/run-group.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { type PhasePrefix, parsePhase } from "../../src/store/keys.ts";
import { openStore } from "../../src/store/open-store.ts";
import { currentProcess } from "../../src/store/process-identity.ts";
import { readContainerEnvironment } from "../environment.ts";

/** Set once the driver is told to stop. */
let ending: Promise<void> | undefined;

/** Parked caches of waiting episodes. */
const CACHE_BYTES = 1 << 29;

async function main(): Promise<void> {
  const env = readContainerEnvironment({
    T1_STORE_URL: z.string().min(1),
    T1_PHASE: z.string(),
    T1_EPISODES: z.string().regex(/^\d+(,\d+)*$/, "numbers of episodes with commas"),
    T1_POLICY_VERSION: z.coerce.number().int().nonnegative(),
    T1_SANDBOXES: z.enum(["fargate", "bubblewrap"]),
    T1_IMAGES: z.string().optional(),
    T1_DEADLINE_SECONDS: z.coerce.number().positive().default(7200),
    T1_THREADS: z.coerce.number().int().positive().default(availableParallelism()),
  });
  parsePhase(env.T1_PHASE);
  const opened = new AsyncDisposableStack();
  const workFolder = await mkdtemp(join(tmpdir(), "t1-driver-"));
  opened.defer(() => rm(workFolder, { recursive: true, force: true }));
  try {
    const store = await openStore(env.T1_STORE_URL);
    const sandboxes = opened.use(await openSandboxes(env.T1_SANDBOXES));
    const sampler = opened.use(
      new OnnxSampler({ storeUrl: store.url, threads: env.T1_THREADS, cacheBytes: CACHE_BYTES }),
    );
    const interruption = endEarly(env.T1_DEADLINE_SECONDS, () => opened.disposeAsync());
    opened.defer(interruption.end);
    await runGroup(
      {
        phase: env.T1_PHASE as PhasePrefix,
        episodes: env.T1_EPISODES.split(",").map(Number),
        policyVersion: env.T1_POLICY_VERSION,
        workFolder,
      },
      {
        store,
        sandboxes,
        images: imageServices(env.T1_IMAGES, sandboxes),
        sampler,
        holder: { name: `driver of ${env.T1_EPISODES}`, process: currentProcess() },
        onEpisode: ({ episode, attempt, endReason, turnCount, failure }) =>
          console.log(JSON.stringify({ episode, attempt, endReason, turnCount, failure: failure?.name })),
      },
    );
  } finally {
    await opened.disposeAsync();
  }
}

function openSandboxes(kind: "fargate" | "bubblewrap"): Promise<SandboxProvider> {
  if (kind === "bubblewrap") return createBubblewrapProvider();
  throw new InputError({
    what: "this driver cannot lease sandboxes on Fargate yet",
    where: "T1_SANDBOXES",
    expected: "bubblewrap",
    fix: "build the driver from a version that has src/sandbox/fargate",
  });
}

/** Spot gives two minutes: sandboxes are ended, and what was not finished counts as not begun. */
function endEarly(deadlineSeconds: number, dispose: () => Promise<void>): { readonly end: () => void } {
  const interrupted: ExitCode = 75;
  const leave = (why: string) => () => {
    console.error(JSON.stringify({ message: "interrupted", why }));
    ending = dispose().finally(() => process.exit(interrupted));
  };
  const onSignal = leave("SIGTERM");
  const timer = setTimeout(leave("deadline"), deadlineSeconds * 1000);
  process.once("SIGTERM", onSignal).once("SIGINT", onSignal);
  return {
    end: () => {
      clearTimeout(timer);
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
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
