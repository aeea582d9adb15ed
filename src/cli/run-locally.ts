// `t1 run start` and `t1 run resume` on this machine: the deployed run machine, with executors of this process.
import type { RunConfig } from "../config/run-config.ts";
import { assertCanGoOn } from "../learning/checkpoints.ts";
import { imageServices } from "../rollout/image-services.ts";
import { asStartedFrom, changeRun, planChange } from "../run/change-run.ts";
import { readOverlap } from "../run/cloud-settings.ts";
import { assertRunName } from "../run/deployable.ts";
import { runKey } from "../run/keys.ts";
import { describeSoftware } from "../run/run-record.ts";
import { advanceState, readState } from "../run/run-state.ts";
import { assertNoRun, assertSameConfig, startRun } from "../run/start-run.ts";
import { openSandboxes } from "../sandbox/open-sandboxes.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore, openStoreIfThere } from "../store/open-store.ts";
import { checkStart, type StartCheck } from "../task-gates/check-start.ts";
import { softwareOf } from "../training/engines.ts";
import type { LocalTaskOptions } from "./local-options.ts";
import { assertTasks, type LocalOptions, withLocalRun } from "./local-runner.ts";
import { Progress } from "./progress.ts";
import { rewardWarnings } from "./reward-warnings.ts";
import { describeChange, showRun } from "./run-progress.ts";

export interface LocalStart {
  readonly run: string;
  readonly config: RunConfig;
  readonly configFile: string;
  /** Goes on with a run that exists; without it that is an error. */
  readonly mayBeThere: boolean;
}

/**
 * Starts a run and works on it to its end. Everything that a start can be refused for is looked at first: a refused one
 * writes nothing.
 *
 * @param local the store, which is made when it is missing
 */
export async function startLocally(
  local: string,
  { run, config, configFile, mayBeThere }: LocalStart,
  options: LocalTaskOptions,
): Promise<ObjectStore> {
  assertRunName(run);
  const key = runKey(run);
  const there = await openStoreIfThere(local);
  if (there !== undefined) {
    if (mayBeThere && (await there.head(key)) !== undefined) {
      await assertSameConfig({ run, config, configFile }, { store: there });
      const store = await openStore(local, "change");
      await resumeLocally(store, run, options);
      return store;
    }
    await assertNoRun(run, there);
  }
  const { inputs } = await checkLocally({ config, configFile }, options, there);
  for (const warning of rewardWarnings(inputs.config)) process.stderr.write(`warning: ${warning}\n`);
  const store = await openStore(local);
  await work(store, run, options, async progress => {
    progress.begin("writing the run's first policy");
    const software = describeSoftware(await softwareOf(config.engine));
    await startRun({ run, config, configFile, software, createdAt: new Date() }, { store }, inputs);
  });
  return store;
}

/** What `t1 run start` looks at before it writes anything. @param store undefined where there is none yet */
export async function checkLocally(
  written: Pick<LocalStart, "config" | "configFile">,
  {
    sandboxes: kind,
    images: imagesFile,
    processes,
  }: Pick<LocalTaskOptions, "sandboxes" | "images" | "processes">,
  store: ObjectStore | undefined,
): Promise<StartCheck> {
  assertTasks(written.config, processes ? "processes" : "in-process");
  const progress = new Progress({ stream: process.stderr });
  progress.begin("checking pool, model and sandboxes");
  const sandboxes = await openSandboxes(kind);
  try {
    return await checkStart(written, {
      ...{ store, sandboxes, images: imageServices(imagesFile, sandboxes) },
      onTask: (done, total) => progress.advance(done, total),
    });
  } finally {
    await sandboxes[Symbol.asyncDispose]();
    progress.clear();
  }
}

/**
 * Goes on where the run stands: with the executions that were under way, or with new ones.
 *
 * @param set settings that change; with them, everything is looked at again that a start looks at
 */
export async function resumeLocally(
  store: ObjectStore,
  run: string,
  options: LocalTaskOptions,
  set: readonly string[] = [],
): Promise<void> {
  const input = { run, set, at: new Date() };
  const { record, changes } = await planChange(store, input); // a name with a slip in it leaves nothing behind
  if (changes.length > 0) {
    const config = asStartedFrom(run, record.config);
    await checkLocally({ config, configFile: "/run.yaml" }, options, store); // stored paths are absolute
  }
  await work(store, run, options, async progress => {
    for (const change of await changeRun(store, input)) progress.line(describeChange(change));
    await goOn(store, run);
  });
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
