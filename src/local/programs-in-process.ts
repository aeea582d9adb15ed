// What driver tasks and training jobs run in this process: the work of their containers.
import type { Program, ProgramRun } from "../asl/executors/program.ts";
import { Failure } from "../failure/errors.ts";
import { exitCodeOf } from "../failure/exit-code.ts";
import { type TrainerSettings, TrainerThread } from "../learning/trainer-thread.ts";
import { type PlayShardServices, playShard } from "../rollout/play-shard.ts";
import type { OnRunEvent } from "../run/run-events.ts";
import { DRIVER_JOB, TRAINER_JOB } from "../stages/jobs.ts";
import type { SharedByDrivers } from "./shared-by-drivers.ts";

/** Drivers of one process play their shards with the same sampler, sandboxes and prepared tasks. */
export function driverInProcess(
  services: Omit<PlayShardServices, "shared" | "slots" | "cutoff" | "interruption"> & {
    readonly shared: SharedByDrivers;
  },
): Program {
  return asProgram(async ({ environment, signal }) => {
    const job = DRIVER_JOB.fromEnvironment(environment);
    const cutoff = await services.shared.cutoff(job.phase);
    await playShard(
      { ...job, workFolder: "" },
      {
        ...services,
        interruption: signal,
        slots: services.shared.slots,
        ...(cutoff !== undefined && { cutoff }),
      },
    );
  });
}

/** Trains in a thread that keeps its compiled graphs from one job to the next. */
export class TrainerInProcess implements AsyncDisposable {
  readonly program: Program;
  readonly #settings: TrainerSettings;
  #thread: TrainerThread | undefined;

  constructor(settings: TrainerSettings, onEvent: OnRunEvent) {
    this.#settings = settings;
    this.program = asProgram(async ({ environment, signal }) => {
      const job = TRAINER_JOB.fromEnvironment(environment);
      this.#thread ??= new TrainerThread(this.#settings);
      const stopped = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => stopped.reject(signal.reason), { once: true });
      const training = this.#thread.train(job, (done, total) => onEvent({ kind: "train-step", done, total }));
      try {
        await Promise.race([training, stopped.promise]);
      } catch (error) {
        // A thread cannot be interrupted, only ended; after an error its state is not to be trusted either.
        await this[Symbol.asyncDispose]();
        throw error;
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.[Symbol.asyncDispose]();
  }
}

/** A function that ends as the container would: with an exit code by who must act. */
function asProgram(work: (run: Pick<ProgramRun, "environment" | "signal">) => Promise<void>): Program {
  return {
    kind: "function",
    run: async ({ environment, signal }) => {
      const abort = new AbortController();
      const stop = () => abort.abort(new Failure("DriverLost", "its task was stopped", { retryable: false }));
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
      try {
        await work({ environment, signal: abort.signal });
        return { exitCode: 0 };
      } catch (error) {
        return { exitCode: exitCodeOf(error), error };
      } finally {
        signal.removeEventListener("abort", stop);
      }
    },
  };
}
