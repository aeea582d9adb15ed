// The deployed state machines with this machine's executors: functions, drivers and trainer run here, and the store
// stands for the bucket.
import { z } from "zod";
import type { Clock } from "../asl/clock.ts";
import type { Executors, TaskExecutor } from "../asl/executor.ts";
import type { HistoryEvent } from "../asl/history.ts";
import type { Json } from "../asl/json-value.ts";
import { type LocalRunner, openRunner } from "../asl/runner.ts";
import { StateError } from "../asl/state-error.ts";
import { Failure } from "../failure/errors.ts";
import { iterationPrefix, timingsKey } from "../run/keys.ts";
import type { OnRunEvent } from "../run/run-events.ts";
import { encodeJson } from "../store/json.ts";
import { errorOfExecution } from "./end-of-machine.ts";
import { type ExecutorsOptions, executorsHere } from "./executors.ts";
import { stageBegun, stageTimings } from "./stages.ts";
import { TaskErrors } from "./task-errors.ts";
import type { TaskGate } from "./task-gate.ts";

export interface MachinesOptions extends Omit<ExecutorsOptions, "episodesPerDriver"> {
  /** Of the session's journals. */
  readonly folder: string;
  /** Episodes at work at once. */
  readonly concurrency: number;
  /** Drivers share the places for episodes, so that more of them may wait for one; else each has a place for each of its own. */
  readonly sharesPlaces: boolean;
  readonly gate: TaskGate;
  readonly iterations: number;
  readonly onEvent: OnRunEvent;
  /** Tests of failures put faults of the services in front of the executors, and let time pass faster. */
  readonly withFaults?: (executors: Executors) => Executors;
  readonly clock?: Clock;
}

/** Episodes of a shard: as deployed, but a machine with room for fewer has smaller shards. */
const SHARD_SIZE = 16;
/** Shards that are let in beyond those that fill the machine, so that no place for an episode stays free. */
const SHARDS_WAITING = 2;

const Planned = z.object({ Payload: z.object({ episodeCount: z.int() }) });
/** Of an iteration that went to its end. */
const Published = z.object({ version: z.int() });
const Input = z.object({
  run: z.string().optional(),
  iteration: z.int().optional(),
  version: z.int().optional(),
  evaluation: z.string().optional(),
});
const Outcome = z.object({ outcome: z.string(), generation: z.int().optional() });

export class Machines implements AsyncDisposable {
  readonly #options: MachinesOptions;
  readonly #errors = new TaskErrors();
  readonly #planned = new Map<string, number>();
  readonly #writes: Promise<unknown>[] = [];
  readonly #openedAtMs = Date.now();
  #runner: LocalRunner | undefined;

  private constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** @throws as `openRunner` */
  static async open(options: MachinesOptions): Promise<Machines> {
    const machines = new Machines(options);
    const {
      assembly,
      store,
      concurrency,
      sharesPlaces,
      folder,
      withFaults = executors => executors,
    } = options;
    const drivers = Math.ceil(concurrency / SHARD_SIZE);
    const size = sharesPlaces ? Math.min(SHARD_SIZE, concurrency) : Math.floor(concurrency / drivers);
    machines.#runner = await openRunner({
      machines: assembly.machines,
      executors: machines.#watchAll(withFaults(executorsHere({ ...options, episodesPerDriver: size }))),
      buckets: Object.fromEntries(assembly.buckets.map(name => [name, store])),
      folder,
      clock: options.clock,
      limits: { distributedConcurrency: drivers + (sharesPlaces ? SHARDS_WAITING : 0) },
      onEvent: (arn, event) => machines.#observe(arn, event),
    });
    return machines;
  }

  /**
   * Runs the run machine to its end, or goes on with it.
   *
   * @param overlap the next iteration's episodes are played while this one is trained; the same for the whole run
   * @throws what stopped the run: Failure RunStopped when it was told to, else what its tasks threw
   */
  async run(run: string, session: string, overlap: boolean): Promise<void> {
    const { outcome } = await this.#result("run", `${run}-${session}`, { run, session, overlap });
    if (outcome === "done") return;
    throw new Failure("RunStopped", `the run was stopped; t1 run resume ${run} goes on`, { retryable: true });
  }

  /** Runs the evaluation machine to its end. @throws as `run` */
  async evaluate(
    name: string,
    input: {
      readonly run: string;
      readonly evaluation: string;
      readonly version: number;
      readonly pool: { readonly folder: string; readonly episodes: number };
    },
  ): Promise<void> {
    await this.#result("evaluation", name, input);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runner?.close();
    await Promise.all(this.#writes);
  }

  async #result(
    machine: "run" | "evaluation",
    name: string,
    input: Json,
  ): Promise<{ readonly outcome?: string }> {
    const runner = this.#opened();
    let { executionArn } = runner.startExecution({ machine: this.#named(machine), name, input });
    for (;;) {
      const { paused } = this.#options.gate;
      const ended = await Promise.race([runner.result(executionArn), paused]);
      if (typeof ended === "string") throw new Failure("RunStopped", ended, { retryable: true });
      if (ended.status !== "SUCCEEDED") throw errorOfExecution(ended, this.#errors.gravest());
      const parsed = Outcome.safeParse(JSON.parse(ended.output ?? "null"));
      if (!parsed.success) return {};
      if (parsed.data.outcome !== "handed-over") return parsed.data;
      executionArn = `${executionArn.slice(0, executionArn.lastIndexOf(":"))}:${name}-g${parsed.data.generation}`;
    }
  }

  /** Machines are named after the deployment. */
  #named(machine: "run" | "iteration" | "evaluation"): string {
    const name = Object.keys(this.#options.assembly.machines).find(one => one.endsWith(`-${machine}`));
    return name ?? machine;
  }

  #watchAll(executors: Executors): Executors {
    return Object.fromEntries(Object.entries(executors).map(([name, one]) => [name, this.#watched(one)]));
  }

  /** Lets a task begin only while the run may go on, and keeps what it threw. */
  #watched(executor: TaskExecutor): TaskExecutor {
    const { gate, onEvent } = this.#options;
    return (request, context) =>
      gate.pass(context.signal, async () => {
        try {
          const answer = await executor(request, context);
          this.#errors.forget(request.executionArn);
          return answer;
        } catch (error) {
          if (error instanceof StateError && error.cause !== undefined) {
            this.#errors.remember(request.executionArn, error.cause);
            if (error.cause instanceof Failure)
              onEvent({ kind: "trouble", state: request.state, text: error.cause.message });
          }
          throw error;
        }
      });
  }

  #observe(arn: string, event: HistoryEvent): void {
    const { onEvent } = this.#options;
    // What an earlier runner left goes on while this one is being opened.
    if (this.#runner === undefined) {
      setImmediate(() => this.#observe(arn, event));
      return;
    }
    const machine = arn.split(":").at(-2) ?? "";
    if (machine === this.#named("run")) return;
    if (event.type === "ExecutionStarted") this.#errors.clear();
    if (event.type === "TaskSucceeded") {
      const { output } = event.taskSucceededEventDetails as { readonly output: string };
      const planned = Planned.safeParse(JSON.parse(output));
      if (planned.success) this.#planned.set(arn, planned.data.Payload.episodeCount);
    }
    const stage = stageBegun(event);
    if (stage !== undefined) {
      const { iteration, version = 0, evaluation } = this.#input(arn);
      onEvent({
        kind: "stage",
        iteration: iteration ?? version,
        stage,
        ...(evaluation !== undefined && { evaluation }),
        ...(stage === "rollout" && { total: this.#planned.get(arn) }),
      });
    }
    if (event.type === "ExecutionSucceeded" && machine === this.#named("iteration")) {
      const { output } = event.executionSucceededEventDetails as { readonly output: string };
      if (Published.safeParse(JSON.parse(output)).success) this.#iterated(arn);
    }
  }

  #iterated(arn: string): void {
    const { store, iterations, onEvent } = this.#options;
    const runner = this.#opened();
    const { run = "", iteration = 0 } = this.#input(arn);
    const isWhole = Date.parse(runner.describe(arn).startDate) >= this.#openedAtMs;
    const timings = isWhole ? stageTimings(runner.history(arn)) : undefined;
    onEvent({ kind: "iteration", iteration, iterations, timings });
    // A run of thousands of iterations would else keep them all in memory.
    setImmediate(() => runner.forget(arn));
    if (timings === undefined) return;
    const key = timingsKey(iterationPrefix(run, iteration));
    const written = store.put(key, encodeJson(timings), { ifNoneMatch: "*" });
    this.#writes.push(written);
    // Whether it fails is told when everything is closed.
    written.catch(() => {});
  }

  #input(arn: string): z.output<typeof Input> {
    return Input.parse(JSON.parse(this.#opened().describe(arn).input));
  }

  #opened(): LocalRunner {
    if (this.#runner === undefined) throw new Error("the runner tells of events before it is open");
    return this.#runner;
  }
}
