// The executor of `batch:submitJob.sync`: a job of one node or many, tried as often as its retry strategy says. Its error
// names are in error-names.ts; a job that fails is `States.TaskFailed` with the job as cause.
import { z } from "zod";
import { Failure } from "../../failure/errors.ts";
import type { TaskContext, TaskExecutor, TaskRequest } from "../executor.ts";
import type { Json, JsonObject } from "../json-value.ts";
import { StateError } from "../state-error.ts";
import { type AttemptEnd, mayTryAgain, RetryStrategy } from "./batch-retry.ts";
import { environmentOf, type Program, runProgram } from "./program.ts";

export interface JobDefinition {
  readonly program: Program;
  readonly environment?: Readonly<Record<string, string>>;
  /** Makes it a multi-node job; node 0 is the main one, and the job ends with it. */
  readonly nodeCount?: number;
  /** One try by default. */
  readonly retryStrategy?: RetryStrategy;
  /** Time limit of a try, for all nodes together. */
  readonly timeoutSeconds?: number;
}

export interface JobQueue {
  /** false: the compute environments get no instance, and jobs stay RUNNABLE */
  readonly hasCapacity?: boolean;
  /** The queue's limit for jobs that cannot start (jobStateTimeLimitActions). */
  readonly runnableLimitSeconds?: number;
}

const ContainerOverrides = z.looseObject({
  Command: z.array(z.string()).optional(),
  Environment: z.custom<Json>().optional(),
});
const Arguments = z.looseObject({
  JobName: z.string().regex(/^[A-Za-z0-9][\w-]{0,127}$/),
  JobQueue: z.string(),
  JobDefinition: z.string(),
  ContainerOverrides: ContainerOverrides.optional(),
  NodeOverrides: z
    .looseObject({
      NumNodes: z.int().min(1).optional(),
      NodePropertyOverrides: z
        .array(z.looseObject({ TargetNodes: z.string(), ContainerOverrides: ContainerOverrides.optional() }))
        .optional(),
    })
    .optional(),
  RetryStrategy: RetryStrategy.optional(),
  Timeout: z.looseObject({ AttemptDurationSeconds: z.int().min(60).optional() }).optional(),
});
type Arguments = z.output<typeof Arguments>;

/** Quota: 30 KiB of request. */
const REQUEST_BYTES = 30 * 1024;

/** @param definitions by name. @param queues by name */
export function batchExecutor({
  definitions,
  queues,
}: {
  readonly definitions: Readonly<Record<string, JobDefinition>>;
  readonly queues: Readonly<Record<string, JobQueue>>;
}): TaskExecutor {
  return async (request, context) => {
    const parsed = Arguments.safeParse(request.arguments);
    if (!parsed.success) throw new StateError("Batch.ClientException", z.prettifyError(parsed.error));
    if (Buffer.byteLength(JSON.stringify(request.arguments)) > REQUEST_BYTES)
      throw new StateError("Batch.ClientException", "The request is larger than 30 KiB");
    const given = parsed.data;
    const definition = find(definitions, given.JobDefinition, "JobDefinition");
    const queue = find(queues, given.JobQueue, "JobQueue");
    const response: Json = {
      JobArn: `arn:aws:batch:us-east-1:000000000000:job/${request.requestId}`,
      JobId: request.requestId,
      JobName: given.JobName,
      SdkHttpMetadata: { HttpStatusCode: 200 },
      SdkResponseMetadata: { RequestId: request.requestId },
    };
    context.submitted(response);
    const { job, error } = await runJob(request, context, given, definition, queue);
    if (job.Status !== "SUCCEEDED")
      throw new StateError("States.TaskFailed", JSON.stringify(job), { cause: error });
    return job;
  };
}

function find<T>(all: Readonly<Record<string, T>>, given: string, kind: string): T {
  const name = /([^/:]+)(?::\d+)?$/.exec(given)?.[1] ?? given;
  if (!Object.hasOwn(all, name))
    throw new StateError("Batch.ClientException", `${kind} ${given} does not exist`);
  return all[name];
}

async function runJob(
  request: TaskRequest,
  context: TaskContext,
  given: Arguments,
  definition: JobDefinition,
  queue: JobQueue,
): Promise<{ readonly job: JsonObject; readonly error?: unknown }> {
  const createdMs = context.now();
  const tries: { readonly end: AttemptEnd; readonly startMs: number; readonly stopMs: number }[] = [];
  const describe = (status: "SUCCEEDED" | "FAILED", statusReason: string): JsonObject => ({
    Attempts: tries.map(({ end, startMs, stopMs }) => ({
      Container: { ExitCode: end.exitCode, Reason: end.reason },
      StartedAt: startMs,
      StatusReason: end.statusReason,
      StoppedAt: stopMs,
    })),
    Container: {
      ExitCode: tries.at(-1)?.end.exitCode,
      Reason: tries.at(-1)?.end.reason,
      Command: given.ContainerOverrides?.Command ?? [],
    },
    CreatedAt: createdMs,
    JobArn: `arn:aws:batch:us-east-1:000000000000:job/${request.requestId}`,
    JobDefinition: given.JobDefinition,
    JobId: request.requestId,
    JobName: given.JobName,
    JobQueue: given.JobQueue,
    StartedAt: tries[0]?.startMs,
    Status: status,
    StatusReason: statusReason,
    StoppedAt: context.now(),
  });
  if (queue.hasCapacity === false) {
    await context.sleep(1000 * (queue.runnableLimitSeconds ?? 365 * 24 * 3600));
    return {
      job: describe(
        "FAILED",
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Job cancelled by the queue's time limit for RUNNABLE",
      ),
    };
  }
  const strategy = given.RetryStrategy ?? definition.retryStrategy ?? {};
  for (let attempt = 1; ; attempt++) {
    const startMs = context.now();
    const end = await runAttempt(request, context, given, definition, attempt);
    tries.push({ end, startMs, stopMs: context.now() });
    if (end.exitCode === 0) return { job: describe("SUCCEEDED", end.statusReason) };
    if (context.signal.aborted || !mayTryAgain(strategy, attempt, end))
      return { job: describe("FAILED", end.statusReason), error: end.error };
  }
}

/** Runs one try: all nodes at once, until the main node ends. */
async function runAttempt(
  request: TaskRequest,
  context: TaskContext,
  given: Arguments,
  definition: JobDefinition,
  attempt: number,
): Promise<AttemptEnd> {
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  if (context.signal.aborted) onAbort();
  context.signal.addEventListener("abort", onAbort);
  const timeoutSeconds = given.Timeout?.AttemptDurationSeconds ?? definition.timeoutSeconds;
  let isTimedOut = false;
  // Batch ends a try by the wall clock of its instance.
  const timer =
    timeoutSeconds === undefined
      ? undefined
      : setTimeout(() => {
          isTimedOut = true;
          stop.abort();
        }, 1000 * timeoutSeconds);
  const nodeCount = given.NodeOverrides?.NumNodes ?? definition.nodeCount;
  const nodes = Array.from({ length: nodeCount ?? 1 }, (_, node) =>
    runProgram(definition.program, {
      environment: {
        ...definition.environment,
        ...environmentOf(overridesFor(given, node)?.Environment),
        AWS_BATCH_JOB_ID: request.requestId,
        AWS_BATCH_JOB_ATTEMPT: String(attempt),
        AWS_BATCH_JQ_NAME: given.JobQueue,
        ...(nodeCount !== undefined && {
          AWS_BATCH_JOB_NODE_INDEX: String(node),
          AWS_BATCH_JOB_MAIN_NODE_INDEX: "0",
          AWS_BATCH_JOB_NUM_NODES: String(nodeCount),
          // Batch gives it to the other nodes only.
          ...(node > 0 && { AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS: "127.0.0.1" }),
        }),
      },
      command: overridesFor(given, node)?.Command,
      signal: stop.signal,
      sleep: ms => context.sleep(ms),
    }),
  );
  const [end] = await Promise.all([nodes[0].finally(() => stop.abort()), Promise.allSettled(nodes)]);
  clearTimeout(timer);
  context.signal.removeEventListener("abort", onAbort);
  if (isTimedOut)
    return {
      exitCode: end.exitCode === 0 ? 137 : end.exitCode,
      statusReason: "Job attempt duration exceeded timeout",
      error: new Failure(
        "StageTimedOut",
        `a try of job ${given.JobName} took more than ${timeoutSeconds} s`,
        {
          retryable: false,
        },
      ),
      isTimedOut,
    };
  const statusReason =
    end.exitCode === undefined ? "Task failed to start" : "Essential container in task exited";
  return { statusReason, ...end, isTimedOut };
}

/** `TargetNodes` is `n`, `n:`, `n:m` or `:m`. */
function overridesFor(given: Arguments, node: number) {
  const ranged = given.NodeOverrides?.NodePropertyOverrides?.find(({ TargetNodes: range }) => {
    const [from, to = from] = range.split(":");
    return node >= Number(from || 0) && (to === "" || node <= Number(to));
  });
  return ranged?.ContainerOverrides ?? given.ContainerOverrides;
}
