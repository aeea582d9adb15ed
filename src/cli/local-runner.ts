// Everything a run needs on this machine: the store's lease, sandboxes, sampler and trainer, opened together and closed
// together.
import { availableParallelism, hostname, userInfo } from "node:os";
import { Failure } from "../failure/errors.ts";
import type { CollectServices } from "../pipeline/collect.ts";
import type { OnRunEvent } from "../pipeline/run-events.ts";
import { TrainerThread } from "../pipeline/trainer-thread.ts";
import { OnnxSampler } from "../sampler/onnx/onnx-sampler.ts";
import { createBubblewrapProvider } from "../sandbox/bubblewrap/provider.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { acquireOwner } from "../store/owner-lease.ts";
import { currentProcess } from "../store/process-identity.ts";
import { readState } from "../store/run-state.ts";

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
  { threads, onEvent }: { readonly threads: number; readonly onEvent: OnRunEvent },
  work: (runner: LocalRunner) => Promise<T>,
): Promise<T> {
  const name = `${userInfo().username}@${hostname()}`;
  const identity = currentProcess();
  const lease = await acquireOwner(store, run, {
    holder: name,
    process: identity,
    ttlMs: LEASE_MS,
    clock: Date.now,
  });
  let lost: unknown;
  const renewal = setInterval(() => {
    lease.renew().catch(error => {
      lost = error;
    });
  }, LEASE_MS / 3);
  const interrupt = interruptOnSignals();
  const sandboxes = await createBubblewrapProvider();
  const settings = { storeUrl: store.url, threads: threads === 0 ? availableParallelism() : threads };
  const sampler = new OnnxSampler({ ...settings, cacheBytes: CACHE_BYTES });
  const trainer = new TrainerThread(settings);
  try {
    await sandboxes.sweep();
    const mayGoOn = async (): Promise<void> => {
      if (lost !== undefined) throw lost;
      if (interrupt.received())
        throw new Failure("RunStopped", `interrupted; t1 run resume ${run} goes on`, { retryable: true });
      const { stopped } = (await readState(store, run)).state;
      if (stopped !== undefined)
        throw new Failure("RunStopped", `${stopped.reason}; t1 run resume ${run} goes on`, {
          retryable: true,
        });
    };
    return await work({
      store,
      sandboxes,
      sampler,
      trainer,
      holder: { name, process: identity },
      onEvent,
      mayGoOn,
    });
  } finally {
    clearInterval(renewal);
    interrupt.end();
    await sampler[Symbol.asyncDispose]();
    await trainer[Symbol.asyncDispose]();
    await sandboxes[Symbol.asyncDispose]();
    await lease.release();
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
