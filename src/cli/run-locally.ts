// `t1 run start` and `t1 run resume` on this machine: the deployed run machine, with executors of this process.
import type { RunConfig } from "../config/run-config.ts";
import { assertCanGoOn } from "../learning/checkpoints.ts";
import { readOverlap } from "../run/cloud-settings.ts";
import { assertRunName } from "../run/deployable.ts";
import { runKey } from "../run/keys.ts";
import { describeSoftware, readRun } from "../run/run-record.ts";
import { advanceState, readState } from "../run/run-state.ts";
import { assertSameConfig, startRun } from "../run/start-run.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { softwareOf } from "../training/engines.ts";
import type { LocalTaskOptions } from "./local-options.ts";
import { type LocalOptions, withLocalRun } from "./local-runner.ts";
import { Progress } from "./progress.ts";
import { showRun } from "./run-progress.ts";

export async function startLocally(
  store: ObjectStore,
  {
    run,
    config,
    configFile,
    mayBeThere,
  }: {
    readonly run: string;
    readonly config: RunConfig;
    readonly configFile: string;
    /** Goes on with a run that exists; without it that is an error. */
    readonly mayBeThere: boolean;
  },
  options: LocalTaskOptions,
): Promise<void> {
  assertRunName(run);
  await work(store, run, options, async progress => {
    if (mayBeThere && (await store.head(runKey(run))) !== undefined) {
      await assertSameConfig({ run, config, configFile }, { store });
      return goOn(store, run);
    }
    progress.begin("reading pool and model");
    const software = describeSoftware(await softwareOf(config.engine));
    await startRun({ run, config, configFile, software, createdAt: new Date() }, { store });
  });
}

/** Goes on where the run stands: with the executions that were under way, or with new ones. */
export async function resumeLocally(
  store: ObjectStore,
  run: string,
  options: LocalTaskOptions,
): Promise<void> {
  await readRun(store, run); // a name with a slip in it leaves nothing behind
  await work(store, run, options, () => goOn(store, run));
}

/** What a command tells `withLocalRun`, with its progress on stderr. */
export function localOptions(
  store: ObjectStore,
  run: string,
  { sandboxes, images, processes, sampler }: LocalTaskOptions,
  progress: Progress,
): LocalOptions {
  return {
    sandboxes,
    imagesFile: images,
    tasks: processes ? "processes" : "in-process",
    sampler,
    onEvent: showRun(run, store, progress),
    onSynthesis: () => progress.begin("synthesizing the state machines, once for this version"),
  };
}

async function work(
  store: ObjectStore,
  run: string,
  options: LocalTaskOptions,
  begin: (progress: Progress) => Promise<void>,
): Promise<void> {
  const progress = new Progress({ stream: process.stderr });
  try {
    await withLocalRun(
      store,
      run,
      "run",
      localOptions(store, run, options, progress),
      () => begin(progress),
      // With another value than at first the run would be another one, which its preflight refuses.
      async ({ toItsEnd }) => toItsEnd(options.overlap ?? (await readOverlap(store, run)) ?? false),
    );
  } finally {
    progress.clear();
  }
}

async function goOn(store: ObjectStore, run: string): Promise<void> {
  await assertCanGoOn(store, run);
  await advanceState(store, run, await readState(store, run), { kind: "resume" });
}
