// Waits for tasks: one loop asks for all that anybody waits for, a hundred at a time, so that a wave of sandboxes does not
// use up the rate of DescribeTasks.
import { setTimeout as sleep } from "node:timers/promises";
import type { Task } from "@aws-sdk/client-ecs";
import { mayPass, refusalOfError } from "./ecs-refusal.ts";
import { jittered, type Pauses } from "./retry-aws.ts";

/** As many as DescribeTasks takes. */
const DESCRIBED_AT_ONCE = 100;

export interface TaskWatchOptions {
  /** One call of DescribeTasks. @returns those that ECS knows */
  readonly describe: (arns: readonly string[]) => Promise<readonly Task[]>;
  /** Between two looks: the first while something new is waited for, longer the longer nothing happens. */
  readonly pauses: Pauses;
  /** Reads follow writes late: a task that was just started may be unknown for so long. */
  readonly unknownAfterMs: number;
}

interface Waiting {
  readonly arn: string;
  readonly since: number;
  readonly untilMs: number;
  readonly isKnown: boolean;
  readonly isWanted: (task: Task) => boolean;
  readonly resolve: (task: Task | "unknown" | "late") => void;
  readonly reject: (error: Error) => void;
}

export class TaskWatch {
  readonly #options: TaskWatchOptions;
  readonly #waiting = new Set<Waiting>();
  #pauseMs: number;
  #isLooking = false;

  constructor(options: TaskWatchOptions) {
    this.#options = options;
    this.#pauseMs = options.pauses.firstMs;
  }

  /**
   * @param untilMs Unix time
   * @param isKnown ECS has described it before, so that it does not have to be waited for
   * @returns the task once it is as wanted; `unknown` when ECS does not know it for long, `late` after the time
   * @throws EcsRefusal when asking again will not help
   */
  until(
    arn: string,
    isWanted: (task: Task) => boolean,
    { untilMs, isKnown = false }: { readonly untilMs: number; readonly isKnown?: boolean },
  ): Promise<Task | "unknown" | "late"> {
    return new Promise((resolve, reject) => {
      this.#waiting.add({ arn, since: performance.now(), untilMs, isKnown, isWanted, resolve, reject });
      this.#pauseMs = this.#options.pauses.firstMs;
      if (!this.#isLooking) void this.#look();
    });
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.size > 0) {
      // Half of it is sure, so that nobody is asked without a pause.
      await sleep(this.#pauseMs / 2 + jittered(this.#pauseMs / 2));
      this.#pauseMs = Math.min(this.#pauseMs * 1.5, this.#options.pauses.longestMs);
      const arns = [...new Set([...this.#waiting].map(({ arn }) => arn))];
      for (let start = 0; start < arns.length; start += DESCRIBED_AT_ONCE)
        await this.#describe(arns.slice(start, start + DESCRIBED_AT_ONCE));
    }
    this.#isLooking = false;
  }

  async #describe(arns: readonly string[]): Promise<void> {
    const asked = new Set(arns);
    const waiting = [...this.#waiting].filter(({ arn }) => asked.has(arn));
    try {
      const tasks = new Map((await this.#options.describe(arns)).map(task => [task.taskArn, task]));
      for (const one of waiting) this.#tell(one, tasks.get(one.arn));
    } catch (error) {
      const refusal = refusalOfError(error);
      for (const one of waiting) {
        if (!mayPass(refusal)) this.#end(one, () => one.reject(refusal));
        else if (Date.now() > one.untilMs) this.#end(one, () => one.resolve("late"));
      }
      this.#pauseMs = this.#options.pauses.longestMs;
    }
  }

  #tell(one: Waiting, task: Task | undefined): void {
    if (task !== undefined && one.isWanted(task)) this.#end(one, () => one.resolve(task));
    else if (task === undefined && (one.isKnown || this.#isOverdue(one)))
      this.#end(one, () => one.resolve("unknown"));
    else if (Date.now() > one.untilMs) this.#end(one, () => one.resolve("late"));
  }

  #isOverdue({ since }: Waiting): boolean {
    return performance.now() - since > this.#options.unknownAfterMs;
  }

  #end(one: Waiting, tell: () => void): void {
    this.#waiting.delete(one);
    tell();
  }
}
