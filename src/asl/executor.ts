// The one interface between a Task state and what does its work: a function in this process, a child process, another
// execution. An executor answers as the service's API does and fails with the service's error names.
import type { Json, JsonObject } from "./json-value.ts";
import type { Resource } from "./resource.ts";

export interface TaskRequest {
  readonly resource: Resource;
  /** What the state's Arguments came to. */
  readonly arguments: JsonObject;
  readonly executionArn: string;
  readonly state: string;
  /** The same for the same try of the same state, also after a restart: an idempotency token. */
  readonly requestId: string;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Index in the innermost Map around the state. */
  readonly item: number | undefined;
}

export interface TaskContext {
  /** The state timed out or its execution ended: stop what was started. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970 on the runner's clock. */
  now(): number;
  /** Waits on the runner's clock, which may be a virtual one. Rejects when the signal fires. */
  sleep(ms: number): Promise<void>;
  /** Awaits something that itself waits on the runner's clock, such as another execution. */
  idle<T>(promise: Promise<T>): Promise<T>;
  /** For `.sync`: the job was accepted. @param response of the call that submitted it */
  submitted(response: Json): void;
  /** Work that goes on after the executor has answered. The runner stops it and waits for it when it closes. */
  detach(work: Promise<unknown>): void;
}

/**
 * For `.sync` it calls `submitted` and resolves with the finished job; otherwise it resolves with the call's response.
 * For `.waitForTaskToken` the token is part of the arguments, where the definition put it, and whoever gets it calls
 * the runner's `sendTaskSuccess`, `sendTaskFailure` and `sendTaskHeartbeat`.
 *
 * @throws StateError when the task fails; anything else is taken for a bug and breaks the execution off
 */
export type TaskExecutor = (request: TaskRequest, context: TaskContext) => Promise<Json>;

/** By `executorKey` of the resource: `ecs:runTask`. */
export type Executors = Readonly<Record<string, TaskExecutor>>;
