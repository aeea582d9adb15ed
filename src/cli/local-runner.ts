// Everything a run needs on this machine: the store's lease, the deployed state machines, sandboxes, sampler and trainer,
// opened together and closed together.
import { rm } from "node:fs/promises";
import { availableParallelism, hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { readAssembly } from "../asl/assembly.ts";
import { type Program, runProgram } from "../asl/executors/program.ts";
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { recordUnhandled } from "../failure/unhandled.ts";
import { makeFolder } from "../files/file-steps.ts";
import { currentProcess } from "../files/process-identity.ts";
import { folderOfThisProcess, removeLeftovers } from "../files/temporary-file.ts";
import { containerProcess } from "../local/container-process.ts";
import { canGoOn, executionsFolder, keepJournals, newestSession } from "../local/journals.ts";
import { Machines } from "../local/machines.ts";
import { driverInProcess, TrainerInProcess } from "../local/programs-in-process.ts";
import { ServedSampler } from "../local/served-sampler.ts";
import { SharedByDrivers } from "../local/shared-by-drivers.ts";
import { synthesizedAssembly } from "../local/synthesized-assembly.ts";
import { TaskGate } from "../local/task-gate.ts";
import { readModelConfig } from "../model/checkpoint.ts";
import { imageServices } from "../rollout/image-services.ts";
import { acquireOwner, type OwnerLease } from "../run/owner-lease.ts";
import type { OnRunEvent } from "../run/run-events.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import { openPolicy } from "../run/version.ts";
import { OnnxSampler } from "../sampler/onnx/onnx-sampler.ts";
import type { Sampler } from "../sampler/sampler.ts";
import { SglangSampler } from "../sampler/sglang/sglang-sampler.ts";
import { openSandboxes, type SandboxKind } from "../sandbox/open-sandboxes.ts";
import { openRunFolder } from "../sandbox/run-folder.ts";
import type { SandboxProvider } from "../sandbox/sandbox.ts";
import { DRIVER_SETTINGS, TRAINER_SETTINGS } from "../stages/jobs.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { interruptOnSignals } from "./interruption.ts";
import type { SamplerKind } from "./sampler-option.ts";

export interface LocalOptions {
  readonly sandboxes: SandboxKind;
  readonly imagesFile: string | undefined;
  /** What drivers and training jobs are: work in this process, or the containers' entry points as processes. */
  readonly tasks: "in-process" | "processes";
  readonly sampler: SamplerKind;
  readonly onEvent: OnRunEvent;
  readonly onSynthesis: () => void;
}

export interface LocalRun {
  /** Runs the run to its end, from wherever it stands. */
  readonly toItsEnd: (overlap: boolean) => Promise<void>;
  readonly evaluate: Machines["evaluate"];
  /** Part of the names of executions; another one for each runner. */
  readonly session: string;
}

const LEASE_MS = 60_000;
/** Parked caches of waiting episodes. */
const CACHE_BYTES = 1 << 30;

/**
 * Owns the run while `work` runs. The first SIGINT or SIGTERM lets the tasks at work end and then stops; a second one
 * ends the process at once, which loses no more than the episodes under way.
 *
 * @param kind whether `work` runs the run or evaluations of it; each has journals of its own
 * @param begin makes the run where it is not there yet
 * @throws InputError when another runner owns the run
 */
export async function withLocalRun<T>(
  store: ObjectStore,
  run: string,
  kind: "run" | "evaluation",
  options: LocalOptions,
  begin: () => Promise<unknown>,
  work: (run: LocalRun) => Promise<T>,
): Promise<T> {
  const holder = { name: `${userInfo().username}@${hostname()}`, process: currentProcess() };
  // What was opened is closed in reverse order, also when a later opening fails.
  const opened = new AsyncDisposableStack();
  try {
    const goesOn = kind === "run" ? `t1 run resume ${run} goes on` : "the same command goes on";
    const first = "stopping after the tasks at work; once more ends at once";
    const interrupt = interruptOnSignals({ first, goesOn });
    opened.defer(interrupt.end);
    // One episode's error may not end the others.
    opened.defer(recordUnhandled(text => process.stderr.write(text)).end);
    const sandboxes = opened.use(await openSandboxes(options.sandboxes));
    const lease = opened.use(
      await acquireOwner(store, run, {
        holder: holder.name,
        process: holder.process,
        ttlMs: LEASE_MS,
        clock: Date.now,
      }),
    );
    const ownership = keepRenewing(lease);
    opened.defer(ownership.end);
    await sandboxes.sweep();
    await begin();
    const { config } = await readRun(store, run);
    assertTasks(config, options.tasks);
    const assembly = readAssembly(await synthesizedAssembly({ onSynthesis: options.onSynthesis }));
    const { session, folder } = openSession(store, run, kind, lease, assembly.machines);
    opened.defer(() => keepJournals(store, run, { folder, session }));

    const workFolder = await openWorkFolder();
    opened.defer(() => rm(workFolder, { recursive: true, force: true }));
    const cores = config.threads === 0 ? availableParallelism() : config.threads;
    const images = imageServices(options.imagesFile, sandboxes);
    const { concurrency } = config.rollout;
    const shared = new SharedByDrivers({ store, images, workFolder, concurrency });
    const programs = await openPrograms(opened, run, cores, options, {
      ...{ store, sandboxes, images, holder, shared },
    });
    const gate = new TaskGate(async () => {
      ownership.assert();
      if (interrupt.received()) return `interrupted; ${goesOn}`;
      // A stop is the run's: what it has come to may be evaluated.
      const { stopped } = kind === "run" ? (await readState(store, run)).state : {};
      return stopped && `${stopped.reason}; ${goesOn}`;
    });
    const machines = opened.use(
      await Machines.open({
        ...{ store, assembly, folder, concurrency, shared, gate, ...programs },
        sharesPlaces: options.tasks === "in-process",
        environment: programSettings(store, options, cores),
        iterations: config.training.iterations,
        onEvent: options.onEvent,
      }),
    );
    return await work({
      session,
      toItsEnd: overlap => machines.run(run, session, overlap),
      evaluate: (name, input) => machines.evaluate(name, input),
    });
  } finally {
    await opened.disposeAsync();
  }
}

/** What drivers and trainers that are processes are told, on top of what the deployment tells their containers. */
function programSettings(store: ObjectStore, { sandboxes, imagesFile }: LocalOptions, threads: number) {
  const common = { storeUrl: store.url, threads };
  return {
    ...DRIVER_SETTINGS.toEnvironment({ ...common, sandboxes, imagesFile }),
    ...TRAINER_SETTINGS.toEnvironment({ ...common, device: "cpu" }),
  };
}

/** A folder for as long as this process lives; those of runners that were killed are removed. */
async function openWorkFolder(): Promise<string> {
  const parent = join(openRunFolder(tmpdir()).path, "work");
  await makeFolder(parent);
  await removeLeftovers(parent);
  const folder = folderOfThisProcess(parent);
  await makeFolder(folder);
  return folder;
}

/** A session that was killed goes on; else a new one begins, named by the number of the lease, which nobody else has. */
function openSession(
  store: ObjectStore,
  run: string,
  kind: "run" | "evaluation",
  lease: OwnerLease,
  machines: Readonly<Record<string, string>>,
): { readonly session: string; readonly folder: string } {
  const parent = executionsFolder(store, run);
  const newest = kind === "run" ? newestSession(parent) : undefined;
  if (newest !== undefined && canGoOn(join(parent, newest), machines))
    return { session: newest, folder: join(parent, newest) };
  const session = `${kind === "run" ? "s" : "e"}${lease.owner.generation}`;
  return { session, folder: join(parent, session) };
}

/** Programs of drivers and trainer, over one sampler for all drivers or one in each process that plays. */
async function openPrograms(
  opened: AsyncDisposableStack,
  run: string,
  cores: number,
  { tasks, sampler: kind, onEvent }: LocalOptions,
  services: Omit<Parameters<typeof driverInProcess>[0], "sampler">,
) {
  const { store } = services;
  const storeUrl = store.url;
  // Sandboxes work while the sampler does: one core is theirs.
  const settings = { storeUrl, threads: Math.max(1, cores - 1), cacheBytes: CACHE_BYTES };
  const served =
    kind === "served" ? opened.use(await ServedSampler.open({ ...settings, onEvent })) : undefined;
  if (tasks === "processes") {
    const { names } = DRIVER_SETTINGS;
    const address = served && { [names.samplerUrl]: served.url, [names.samplerKey]: served.key };
    return {
      driver: sweptAfter(containerProcess("driver", onEvent, address), services.sandboxes, onEvent),
      trainer: containerProcess("trainer", onEvent),
    };
  }
  const trainer = opened.use(new TrainerInProcess({ storeUrl, threads: cores }, onEvent));
  const sampler: Sampler = opened.use(
    served === undefined ? new OnnxSampler(settings) : await openClient(store, run, served),
  );
  const onEpisode = () => onEvent({ kind: "episode" });
  return { driver: driverInProcess({ ...services, sampler, onEpisode }), trainer: trainer.program };
}

/** A driver that was killed leaves containers behind, which would work on until their deadline. */
function sweptAfter(driver: Program, sandboxes: SandboxProvider, onEvent: OnRunEvent): Program {
  return {
    kind: "function",
    run: async run => {
      const end = await runProgram(driver, run);
      if (end.exitCode !== 0)
        await sandboxes
          .sweep()
          .catch(error => onEvent({ kind: "trouble", state: "sweep", text: String(error) }));
      return end;
    },
  };
}

/** All policies of a run have the first one's shape. */
async function openClient(store: ObjectStore, run: string, { url, key }: ServedSampler): Promise<Sampler> {
  const model = await readModelConfig(await openPolicy(store, { run, version: 0 }));
  return new SglangSampler({ url, apiKey: key, model });
}

/** @throws InputError for settings that drivers in processes of their own cannot keep */
export function assertTasks({ rollout }: RunConfig, tasks: LocalOptions["tasks"]): void {
  if (tasks === "in-process" || rollout.stragglers === "wait") return;
  throw new InputError({
    what: "drivers that are processes cannot cut stragglers",
    where: "rollout.stragglers",
    expected: "wait: they do not know of one another's episodes",
    fix: "set rollout.stragglers to wait, or leave --processes out",
  });
}

function keepRenewing(lease: OwnerLease): { readonly assert: () => void; readonly end: () => void } {
  let lost: unknown;
  const renewal = setInterval(() => {
    lease.renew().catch(error => {
      lost = error;
    });
  }, LEASE_MS / 3);
  return {
    assert: () => {
      if (lost !== undefined) throw lost;
    },
    end: () => clearInterval(renewal),
  };
}
