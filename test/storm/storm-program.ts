// The runner of a storm: the deployed state machines with local executors that meet faults. Killed at any
// moment and started again, it goes on. Words: a JSON of StormSettings.
import { readAssembly } from "../../src/asl/assembly.ts";
import { currentProcess } from "../../src/files/process-identity.ts";
import { readImages } from "../../src/image/images-file.ts";
import { containerProcess } from "../../src/local/container-process.ts";
import { Machines } from "../../src/local/machines.ts";
import { driverInProcess } from "../../src/local/programs-in-process.ts";
import { SharedByDrivers } from "../../src/local/shared-by-drivers.ts";
import { synthesizedAssembly } from "../../src/local/synthesized-assembly.ts";
import { TaskGate } from "../../src/local/task-gate.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { readRun } from "../../src/run/run-record.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { createRootBuilder } from "../../src/sandbox/bubblewrap/root-builder.ts";
import { openStore } from "../../src/store/open-store.ts";
import { withFaults } from "../asl/fault-plan.ts";
import { endsEarly } from "./early-score.ts";
import { fastClock } from "./fast-clock.ts";
import { killSandboxes, SERVICE_FAULTS, stormyDriver, stormyTrainer } from "./storm-faults.ts";
import { StormLog } from "./storm-log.ts";
import { stormyStore } from "./stormy-store.ts";

export interface StormSettings {
  readonly run: string;
  readonly storeUrl: string;
  /** Folder of the journals. */
  readonly folder: string;
  readonly workFolder: string;
  readonly log: string;
  readonly startMs: number;
  /** Speed of the state machines' clock beside the real one. */
  readonly speed: number;
  readonly killSandboxEveryMs: number;
  /** Share of a driver's requests to the store that fail. */
  readonly storeFaultShare: number;
}

const settings = JSON.parse(process.argv[2] ?? "") as StormSettings;
const log = new StormLog(settings.log);
log.note("life");

const store = await openStore(settings.storeUrl);
const { config } = await readRun(store, settings.run);
const { concurrency } = config.rollout;
const sandboxes = createBubblewrapProvider();
const builtImages = readImages(undefined);
const images = {
  images: builtImages,
  builder: createRootBuilder(builtImages, sandboxes),
  onProgress: () => {},
};
const sampler = new OnnxSampler({ storeUrl: store.url, threads: 1, cacheBytes: 1 << 28 });
const shared = new SharedByDrivers({ store, images, workFolder: settings.workFolder, concurrency });
const random = new RandomStream(deriveSeed("storm", "store", log.count("life")));
const onEpisode = () => log.note("episode");

/** With a network that fails on Spot only: a shard that is lost in both markets is one of few, and none by chance. */
function openDriver(market: string) {
  const own = stormyStore(store, where => {
    const isFault = market === "FARGATE_SPOT" && random.uniform() < settings.storeFaultShare / 2;
    if (isFault) log.note(`fault: store fails ${where} a request`);
    return isFault;
  });
  const holder = { name: "storm", process: currentProcess() };
  return {
    program: driverInProcess({ store: own, sandboxes, images, sampler, shared, holder, onEpisode }),
    store: own,
  };
}

const clock = fastClock(settings.startMs, settings.speed);
const assembly = readAssembly(await synthesizedAssembly());
const machines = await Machines.open({
  ...{ store, folder: settings.folder, concurrency, shared, sharesPlaces: true },
  assembly,
  wrapFunctions: functions => ({ ...functions, score: endsEarly(functions.score) }),
  driver: stormyDriver(openDriver, { shardSize: concurrency, log }),
  trainer: stormyTrainer(
    containerProcess("trainer", () => {}),
    log,
  ),
  environment: {
    T1_STORE_URL: store.url,
    T1_SANDBOXES: "bubblewrap",
    T1_THREADS: "2",
    T1_DEVICE: "cpu",
  },
  gate: new TaskGate(async () => undefined),
  iterations: config.training.iterations,
  onEvent: event => event.kind === "stage" && log.note(`stage ${event.stage}`),
  withFaults: executors => withFaults(executors, SERVICE_FAULTS, Object.values(assembly.machines), clock),
  clock,
});
const calm = killSandboxes(settings.killSandboxEveryMs, log);
try {
  await machines.run(settings.run, "storm", false);
} finally {
  calm();
  await machines[Symbol.asyncDispose]();
  await sampler[Symbol.asyncDispose]();
  await sandboxes[Symbol.asyncDispose]();
}
