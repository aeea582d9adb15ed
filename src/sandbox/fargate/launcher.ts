// From a lease to a task that runs: started under a token of the lease, waited for, and started anew when it ended before
// it ran; on Spot first, then on demand.
import type { Task } from "@aws-sdk/client-ecs";
import { Failure } from "../../failure/errors.ts";
import { nameOf } from "../../sandboxd/leased-sandbox.ts";
import type { Lease, SandboxSpec } from "../sandbox.ts";
import { EcsRefusal, failureOfRefusal } from "./ecs-refusal.ts";
import type { EcsTasks } from "./ecs-tasks.ts";
import { jittered, type Pauses, pause } from "./retry-aws.ts";
import { failureOfStart, type Stopped } from "./stop-failure.ts";
import {
  addressOf,
  type Market,
  startedBy,
  type TaskPlace,
  type Tokens,
  taskRequest,
  tokensOf,
} from "./task-request.ts";
import type { TaskWatch } from "./task-watch.ts";

export interface StartedTask {
  readonly arn: string;
  readonly address: string;
  readonly tokens: Tokens;
}

export interface LauncherOptions {
  readonly ecs: EcsTasks;
  readonly watch: TaskWatch;
  readonly place: TaskPlace;
  readonly pauses: Pauses;
  /** For capacity, a place in the account, and the pull of images, all together. */
  readonly retryForMs: number;
  /** Nobody wants tasks any more: its reason is what those get who wait for one. */
  readonly signal: AbortSignal;
}

export interface Wanted {
  readonly taskDefinition: string;
  readonly spec: SandboxSpec;
  readonly lease: Lease;
  readonly market: Market;
}

export class Launcher {
  readonly #options: LauncherOptions;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  /** @throws Failure SandboxUnavailable; InputError when the deployment has to be changed */
  async start(wanted: Wanted): Promise<StartedTask> {
    const { pauses, retryForMs, signal } = this.#options;
    const untilMs = Math.min(Date.now() + retryForMs, wanted.lease.deadlineMs);
    let { market } = wanted;
    for (let launch = 0; ; launch++) {
      const started = await this.#launch({ ...wanted, market }, launch, untilMs);
      if ("arn" in started) return started;
      const { isOnOtherMarket, error } = started;
      if (isOnOtherMarket) market = "FARGATE";
      const pauseMs = jittered(Math.min(pauses.firstMs * 2 ** launch, pauses.longestMs));
      if (Date.now() + pauseMs > untilMs) throw error;
      await pause(pauseMs, signal);
    }
  }

  /** The task of a lease that runs, whoever started it. */
  async find(lease: Pick<Lease, "id" | "generation">): Promise<StartedTask | undefined> {
    for (const task of await this.#options.ecs.list(startedBy(lease))) {
      const [arn, address, tokens] = [task.taskArn, addressOf(task), tokensOf(task)];
      if (task.desiredStatus === "STOPPED" || task.lastStatus !== "RUNNING") continue;
      if (arn !== undefined && address !== undefined && tokens !== undefined) return { arn, address, tokens };
    }
    return undefined;
  }

  /** @returns the task, or why another one is to be started */
  async #launch(
    wanted: Wanted,
    launch: number,
    untilMs: number,
  ): Promise<StartedTask | { readonly isOnOtherMarket: boolean; readonly error: Error }> {
    const { ecs, place, signal } = this.#options;
    const { market, lease } = wanted;
    const request = taskRequest(place, { ...wanted, launch });
    const isFinal = ({ kind }: EcsRefusal): boolean => kind === "no-capacity" && market === "FARGATE_SPOT";
    let isRepeated = false;
    const onRepeat = (): void => {
      isRepeated = true;
    };
    let arn: string;
    try {
      arn = await ecs.run(request, { untilMs, isFinal, signal, onRepeat });
    } catch (error) {
      if (!(error instanceof EcsRefusal)) throw error;
      const failure = failureOfRefusal(nameOf(lease), error);
      // Another driver had this lease, or we did and gave up: what it started is there, or has ended.
      if (error.kind === "token-used")
        return (await this.#taken(lease, untilMs)) ?? { isOnOtherMarket: false, error: failure };
      // An earlier attempt may have started one, whatever the last one says.
      if (isRepeated || error.kind === "unreachable") await this.#stopUnheard(lease);
      if (isFinal(error)) return { isOnOtherMarket: true, error: failure };
      throw failure;
    }
    const tokens = tokensOf(request);
    if (tokens === undefined) throw new Error("a request of ours has tokens");
    return this.#await(lease, arn, tokens, untilMs);
  }

  async #taken(lease: Lease, untilMs: number) {
    const tasks = await this.#options.ecs.list(startedBy(lease));
    const task = tasks.find(({ desiredStatus }) => desiredStatus !== "STOPPED");
    const [arn, tokens] = [task?.taskArn, task && tokensOf(task)];
    return arn === undefined || tokens === undefined ? undefined : this.#await(lease, arn, tokens, untilMs);
  }

  async #await(lease: Lease, arn: string, tokens: Tokens, untilMs: number) {
    const what = nameOf(lease);
    const { watch, ecs, signal } = this.#options;
    const waiting = watch.until(arn, other => isUp(other) || isOver(other) || signal.aborted, { untilMs });
    const task = await waiting.catch((error: unknown) => {
      throw error instanceof EcsRefusal ? failureOfRefusal(what, error) : error;
    });
    if (signal.aborted) {
      await ecs.stop(arn, "its driver ends").catch(() => undefined); // the sweeper will
      signal.throwIfAborted();
    }
    if (typeof task === "string") {
      await ecs.stop(arn, "it did not start in time").catch(() => undefined); // the sweeper will
      const why = task === "late" ? "it did not start in time" : "ECS does not know its task";
      const error = new Failure("SandboxUnavailable", `${what} cannot be had: ${why}`, { retryable: true });
      if (task === "late") throw error;
      return { isOnOtherMarket: false, error };
    }
    const address = addressOf(task);
    if (!isOver(task) && address !== undefined) return { arn, address, tokens };
    const failure = failureOfStart(what, task as Stopped);
    if (failure.kind === "final") throw failure.error;
    return failure;
  }

  /** Looks for a task that an unanswered request may have started. */
  async #stopUnheard(lease: Lease): Promise<void> {
    const { ecs } = this.#options;
    const tasks = await ecs.list(startedBy(lease)).catch(() => []);
    await Promise.allSettled(
      tasks.map(({ taskArn = "" }) => ecs.stop(taskArn, "nobody heard that it started")),
    );
  }
}

function isUp(task: Task): boolean {
  return task.lastStatus === "RUNNING" && addressOf(task) !== undefined;
}

/** Containers tell how they ended some time before their task counts as stopped. */
export function isOver({ lastStatus, desiredStatus, containers = [] }: Task): boolean {
  const haveStopped = containers.length > 0 && containers.every(one => one.lastStatus === "STOPPED");
  return lastStatus === "STOPPED" || (desiredStatus === "STOPPED" && haveStopped);
}
