// Everything a run needs on this machine: the store's lease, sandboxes, sampler and trainer, opened together and closed
// together.
import { availableParallelism, hostname, userInfo } from "node:os";
import { Failure } from "../failure/errors.ts";
import type { CollectServices } from "../pipeline/collect.ts";
import type { OnRunEvent } from "../pipeline/run-events.ts";
import { TrainerThread } from "../pipeline/trainer-thread.ts";
import { OnnxSampler } from "../sampler/onnx/onnx-sampler.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { acquireOwner } from "../store/owner-lease.ts";
import { currentProcess } from "../store/process-identity.ts";
import { readState } from "../store/run-state.ts";
import { imageServices } from "./image-options.ts";
import { openSandboxes, type SandboxKind } from "./sandbox-options.ts";

export interface LocalRunner extends CollectServices {
  readonly trainer: TrainerThread;
  readonly mayGoOn: () => Promise<void>;
}

const LEASE_MS = 60_000;
/** Parked caches of waiting episodes. */
const CACHE_BYTES = 1 << 30;

/**
 * Owns the run while `work` runs. The first SIGINT or SIGTERM lets the stage at work end and then stops; a second one
 * ends the process at once, which loses no more than the episodes under way.
 *
 * @throws InputError when another runner owns the run
 */
export async function withLocalRunner<T>(
  store: ObjectStore,
  run: string,
  {
    threads,
    sandboxes: sandboxKind,
    imagesFile,
    onEvent,
  }: {
    readonly threads: number;
    readonly sandboxes: SandboxKind;
    readonly imagesFile: string | undefined;
    readonly onEvent: OnRunEvent;
  },
  work: (runner: LocalRunner) => Promise<T>,
): Promise<T> {
  const name = `${userInfo().username}@${hostname()}`;
  const identity = currentProcess();
  // What was opened is closed in reverse order, also when a later opening fails.
  const opened = new AsyncDisposableStack();
  try {
    const interrupt = interruptOnSignals();
    opened.defer(interrupt.end);
    const sandboxes = opened.use(await openSandboxes(sandboxKind));
    const lease = opened.use(
      await acquireOwner(store, run, { holder: name, process: identity, ttlMs: LEASE_MS, clock: Date.now }),
    );
    let lost: unknown;
    const renewal = setInterval(() => {
      lease.renew().catch(error => {
        lost = error;
      });
    }, LEASE_MS / 3);
    opened.defer(() => clearInterval(renewal));
    const cores = threads === 0 ? availableParallelism() : threads;
    const trainer = opened.use(new TrainerThread({ storeUrl: store.url, threads: cores }));
    // Sandboxes work while the sampler does: one core is theirs.
    const samplerThreads = Math.max(1, cores - 1);
    const sampler = opened.use(
      new OnnxSampler({ storeUrl: store.url, threads: samplerThreads, cacheBytes: CACHE_BYTES }),
    );
    const mayGoOn = async (): Promise<void> => {
      if (lost !== undefined) throw lost;
      const { stopped } = (await readState(store, run)).state;
      const reason = interrupt.received() ? "interrupted" : stopped?.reason;
      if (reason === undefined) return;
      throw new Failure("RunStopped", `${reason}; t1 run resume ${run} goes on`, { retryable: true });
    };
    await sandboxes.sweep();
    return await work({
      store,
      sandboxes,
      images: imageServices(imagesFile, sandboxes),
      sampler,
      trainer,
      holder: { name, process: identity },
      onEvent,
      mayGoOn,
    });
  } finally {
    await opened.disposeAsync();
  }
}

function interruptOnSignals(): { readonly received: () => boolean; readonly end: () => void } {
  let received = false;
  const onSignal = (): void => {
    if (received) process.exit(130);
    received = true;
    process.stderr.write("\nstopping after the stage at work; once more ends at once\n");
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    received: () => received,
    end: () => process.off("SIGINT", onSignal).off("SIGTERM", onSignal),
  };
}
