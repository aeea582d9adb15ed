// What driver tasks and training jobs run in this process: the work of their containers.
import { z } from "zod";
import type { Program, ProgramRun } from "../asl/executors/program.ts";
import { Failure, InvariantError } from "../failure/errors.ts";
import { exitCodeOf } from "../failure/exit-code.ts";
import { type TrainerSettings, TrainerThread } from "../learning/trainer-thread.ts";
import { type RunGroupServices, runGroup } from "../rollout/run-group.ts";
import { type PhasePrefix, parsePhase } from "../run/keys.ts";
import type { OnRunEvent } from "../run/run-events.ts";
import type { SharedGroups } from "./shared-groups.ts";

const GroupEnvironment = z.object({
  T1_PHASE: z.string(),
  T1_EPISODES: z.string().regex(/^\d+(,\d+)*$/),
  T1_POLICY_VERSION: z.coerce.number().int().nonnegative(),
});

const TrainEnvironment = z.object({
  T1_RUN: z.string().min(1),
  T1_ITERATION: z.coerce.number().int().nonnegative(),
});

/** Drivers of one process play their groups with the same sampler, sandboxes and prepared tasks. */
export function driverInProcess(
  services: Omit<RunGroupServices, "shared" | "slots" | "cutoff" | "interruption"> & {
    readonly shared: SharedGroups;
  },
): Program {
  return asProgram(async ({ environment, signal }) => {
    const env = parse(GroupEnvironment, environment);
    parsePhase(env.T1_PHASE);
    const phase = env.T1_PHASE as PhasePrefix;
    const cutoff = await services.shared.cutoff(phase);
    await runGroup(
      {
        phase,
        episodes: env.T1_EPISODES.split(",").map(Number),
        policyVersion: env.T1_POLICY_VERSION,
        workFolder: "",
      },
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
      const { T1_RUN: run, T1_ITERATION: iteration } = parse(TrainEnvironment, environment);
      this.#thread ??= new TrainerThread(this.#settings);
      const stopped = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => stopped.reject(signal.reason), { once: true });
      const training = this.#thread.train({ run, iteration }, (done, total) =>
        onEvent({ kind: "train-step", done, total }),
      );
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

function parse<Schema extends z.ZodType>(
  schema: Schema,
  environment: Readonly<Record<string, string>>,
): z.output<Schema> {
  const parsed = schema.safeParse(environment);
  if (parsed.success) return parsed.data;
  throw new InvariantError("a machine starts a program with another environment than it reads", {
    problems: z.prettifyError(parsed.error),
  });
}
