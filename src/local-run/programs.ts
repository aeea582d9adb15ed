// What driver tasks and training jobs run on this machine: the container's work in this process, or the container's own
// entry point as a process of its own.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Failure, InputError, InvariantError } from "../failure/errors.ts";
import { exitCodeOf } from "../failure/exit-code.ts";
import { type Program, type ProgramRun, runProgram } from "../local/executors/program.ts";
import type { OnRunEvent } from "../pipeline/run-events.ts";
import { type RunGroupServices, runGroup } from "../pipeline/run-group.ts";
import { type TrainerSettings, TrainerThread } from "../pipeline/trainer-thread.ts";
import { type PhasePrefix, parsePhase } from "../store/keys.ts";
import type { SharedGroups } from "./shared-groups.ts";
import { ROOT } from "./synthesized-assembly.ts";

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
  services: Omit<RunGroupServices, "shared" | "slots" | "cutoff" | "signal"> & {
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
      { ...services, signal, slots: services.shared.slots, ...(cutoff !== undefined && { cutoff }) },
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

const EpisodeLine = z.object({ episode: z.int() });
const StepLine = z.object({ step: z.int(), of: z.int() });
/** Of what a process printed, for the error that it ended with. */
const KEPT_CHARACTERS = 4_000;

/** The entry point of the container's image. */
export function containerProcess(container: "driver" | "trainer", onEvent: OnRunEvent): Program {
  return {
    kind: "function",
    run: async run => {
      let printed = "";
      let line = "";
      const end = await runProgram(
        {
          kind: "process",
          entryPoint: [...diesWithUs(), process.execPath, join(ROOT, "containers", container, "main.ts")],
          folder: ROOT,
          onOutput: chunk => {
            const text = Buffer.from(chunk).toString("utf8");
            printed = `${printed}${text}`.slice(-KEPT_CHARACTERS);
            const lines = `${line}${text}`.split("\n");
            line = lines.pop() ?? "";
            for (const one of lines) report(one, onEvent);
          },
        },
        { ...run, environment: { ...ownIdentity(), ...run.environment } },
      );
      return end.exitCode === 0 ? end : { ...end, error: errorOf(end.exitCode, printed, container) };
    },
  };
}

/** Whoever runs this stands for the role that a container's task has: by these the AWS SDK finds credentials. */
function ownIdentity(): Record<string, string> {
  const names = Object.keys(process.env).filter(name => name === "HOME" || name.startsWith("AWS_"));
  return Object.fromEntries(names.map(name => [name, process.env[name] ?? ""]));
}

/** A runner that is killed takes its programs along, as a lost host would; by util-linux, where it is there. */
function diesWithUs(): readonly string[] {
  return existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "TERM", "--"] : [];
}

/** What containers print is made for logs; of it progress is read. */
function report(line: string, onEvent: OnRunEvent): void {
  let printed: unknown;
  try {
    printed = JSON.parse(line);
  } catch {
    return;
  }
  if (EpisodeLine.safeParse(printed).success) onEvent({ kind: "episode" });
  const step = StepLine.safeParse(printed);
  if (step.success) onEvent({ kind: "train-step", done: step.data.step, total: step.data.of });
}

function errorOf(code: number | undefined, printed: string, container: string): Error {
  // The line in which it said why begins with the name of the command.
  const said = printed.slice(printed.lastIndexOf("t1: ") + 1 ? printed.lastIndexOf("t1: ") + 4 : 0).trim();
  const text = said === "" ? `the ${container} ended with exit code ${code ?? "none"}` : said;
  if (code === 2) return new InputError(text);
  if (code === 70) return new InvariantError(text);
  return new Failure("DriverLost", text, { retryable: true });
}
