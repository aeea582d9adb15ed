// What all executions of a runner share.
import type { ObjectStore } from "../store/object-store.ts";
import type { Cancellation } from "./cancellation.ts";
import type { Clock } from "./clock.ts";
import type { Execution } from "./execution.ts";
import type { Executors } from "./executor.ts";
import type { Faults } from "./fault-plan.ts";
import { MOST_EVENTS } from "./history.ts";
import type { Payload } from "./json-value.ts";
import type { StateScope } from "./machine.ts";
import type { MapRuns } from "./map-runs.ts";
import type { TaskTokens } from "./task-tokens.ts";
import type { Thread } from "./thread.ts";

/** Quotas of Step Functions. Tests lower them, so that reaching one takes no time. */
export interface Limits {
  /** Bytes of UTF-8 of an input, output, result or variable. */
  readonly payloadBytes: number;
  readonly historyEvents: number;
  /** Children of a Distributed Map at once, and what it takes when MaxConcurrency is 0 or missing. */
  readonly distributedConcurrency: number;
  /** Iterations of an inline Map at once. */
  readonly inlineConcurrency: number;
}

export const AWS_LIMITS: Limits = {
  payloadBytes: 262_144,
  historyEvents: MOST_EVENTS,
  distributedConcurrency: 10_000,
  inlineConcurrency: 40,
};

export interface World {
  readonly region: string;
  readonly account: string;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly executors: Executors;
  readonly faults: Faults;
  readonly tokens: TaskTokens;
  readonly mapRuns: MapRuns;
  /** Children of Distributed Maps by ARN. */
  readonly children: Map<string, Execution>;
  /** Buckets by name; an unknown one is an error of the state that reads it. */
  readonly bucket: (name: string) => ObjectStore | undefined;
  /** Root of everything random. */
  readonly seed: string;
  /** Runs the states of a scope; here so that a Map can run what contains it without importing it. */
  readonly runStates: (scope: StateScope, input: Payload, thread: Thread) => Promise<Payload>;
  /** Fires when the runner closes. */
  readonly closing: Cancellation;
  /** Waits for this when the runner closes, so that no task outlives it. */
  readonly track: (work: Promise<unknown>) => void;
}
