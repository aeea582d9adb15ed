// The interface between a Task state and the program that does its work: a function in this process, a child process,
// another execution. An executor returns what the service's API returns and fails with the service's error names.
import type { Json, JsonObject } from "./json-value.ts";
import type { Resource } from "./resource.ts";

export interface TaskRequest {
  readonly resource: Resource;
  /** The state's evaluated Arguments. */
  readonly arguments: JsonObject;
  readonly executionArn: string;
  readonly state: string;
  /** Idempotency token: the same for the same try of the same state, also after a restart. */
  readonly requestId: string;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Index of the child in its Distributed Map. */
  readonly item: number | undefined;
}

export interface TaskContext {
  /** Fires when the state timed out or its execution ended: the executor stops what it started. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970 on the runner's clock. */
  now(): number;
  /** Waits on the runner's clock, which may be a virtual one. Rejects when the signal fires. */
  sleep(ms: number): Promise<void>;
  /** Awaits a promise that itself waits on the runner's clock, such as another execution's. */
  idle<T>(promise: Promise<T>): Promise<T>;
  /** For `.sync`: the job was accepted. @param response of the call that submitted it */
  submitted(response: Json): void;
}

/**
 * For `.sync` it calls `submitted` and resolves with the finished job; otherwise it resolves with the call's response.
 *
 * @throws StateError when the task fails; any other error counts as a bug and breaks the execution off
 */
export type TaskExecutor = (request: TaskRequest, context: TaskContext) => Promise<Json>;

/** Keys are `executorKey` of the resource: `ecs:runTask`. */
export type Executors = Readonly<Record<string, TaskExecutor>>;
