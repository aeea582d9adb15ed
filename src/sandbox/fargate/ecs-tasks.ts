// The tasks of one cluster: started, described, listed and stopped, each retried as long as it deserves.
import {
  DescribeTasksCommand,
  type ECSClient,
  ListTasksCommand,
  RunTaskCommand,
  type RunTaskCommandInput,
  StopTaskCommand,
  type Task,
} from "@aws-sdk/client-ecs";
import { EcsRefusal, refusalOfError, refusalOfFailures } from "./ecs-refusal.ts";
import { type Pauses, type RetryOptions, retryAws } from "./retry-aws.ts";

/** As many as DescribeTasks takes. */
const DESCRIBED_AT_ONCE = 100;
/** Requests that nobody waits for are retried this long at most: 1 min. */
const SHORT_RETRY_MS = 60_000;

export interface EcsTasksOptions {
  /** Makes one attempt per request: repeating is done here, where it is known what may be repeated. */
  readonly client: ECSClient;
  readonly cluster: string;
  readonly pauses: Pauses;
}

export class EcsTasks {
  readonly #options: EcsTasksOptions;

  constructor(options: EcsTasksOptions) {
    this.#options = options;
  }

  /**
   * Repeated under its client token, so that a task whose answer was lost is not started twice.
   *
   * @returns ARN of the task
   * @throws EcsRefusal
   */
  run(
    request: RunTaskCommandInput,
    retry: Pick<RetryOptions, "untilMs" | "isFinal" | "signal" | "onRepeat">,
  ): Promise<string> {
    const { client, pauses } = this.#options;
    return retryAws(
      async () => {
        const { tasks = [], failures = [] } = await client.send(new RunTaskCommand(request));
        const arn = tasks[0]?.taskArn;
        if (arn === undefined) throw refusalOfFailures(failures);
        return arn;
      },
      { pauses, ...retry },
    );
  }

  /**
   * One request; whoever asks repeats it.
   *
   * @param arns at most 100
   * @returns those that ECS knows
   * @throws EcsRefusal when ECS neither describes a task nor says that it is missing: a sandbox that works is not lost by that
   */
  async describe(arns: readonly string[]): Promise<readonly Task[]> {
    const { client, cluster } = this.#options;
    const { tasks = [], failures = [] } = await client.send(
      new DescribeTasksCommand({ cluster, tasks: [...arns], include: ["TAGS"] }),
    );
    const told = new Set([...tasks.map(({ taskArn }) => taskArn), ...failures.map(({ arn }) => arn)]);
    const untold = arns.filter(arn => !told.has(arn));
    if (untold.length > 0)
      throw new EcsRefusal("unreachable", `DescribeTasks says nothing of ${untold.join(", ")}`);
    return tasks;
  }

  /** All that run, start, or are about to stop. @param startedBy of one lease; of the whole cluster when not given */
  async list(startedBy?: string): Promise<readonly Task[]> {
    const { client, cluster } = this.#options;
    const arns: string[] = [];
    let nextToken: string | undefined;
    do {
      const request = { cluster, nextToken, ...(startedBy === undefined ? {} : { startedBy }) };
      const page = await this.#soon(() => client.send(new ListTasksCommand(request)));
      arns.push(...(page.taskArns ?? []));
      nextToken = page.nextToken;
    } while (nextToken !== undefined);
    const tasks: Task[] = [];
    for (let start = 0; start < arns.length; start += DESCRIBED_AT_ONCE)
      tasks.push(...(await this.#soon(() => this.describe(arns.slice(start, start + DESCRIBED_AT_ONCE)))));
    return tasks;
  }

  /** One that is gone is no error. @throws EcsRefusal when it may go on */
  async stop(task: string, reason: string): Promise<void> {
    const { client, cluster } = this.#options;
    try {
      await this.#soon(() => client.send(new StopTaskCommand({ cluster, task, reason: `t1: ${reason}` })));
    } catch (error) {
      const refusal = refusalOfError(error);
      if (refusal.kind !== "no-task") throw refusal;
    }
  }

  #soon<Value>(attempt: () => Promise<Value>): Promise<Value> {
    const { pauses } = this.#options;
    return retryAws(attempt, { pauses, untilMs: Date.now() + SHORT_RETRY_MS });
  }
}
