// What all executions of a runner share.
import type { ObjectStore } from "../store/object-store.ts";
import type { Branch } from "./branch.ts";
import type { Clock } from "./clock.ts";
import type { Execution } from "./execution.ts";
import type { Executors } from "./executor.ts";
import { MOST_EVENTS } from "./history.ts";
import type { Payload } from "./json-value.ts";
import type { StateScope } from "./machine.ts";

/** Quotas of Step Functions. Tests lower them to reach one quickly. */
export interface Limits {
  /** Bytes of UTF-8 of an input, output, result or variable. */
  readonly payloadBytes: number;
  readonly historyEvents: number;
  /** Children of a Distributed Map at once, also when its MaxConcurrency is 0 or missing. */
  readonly distributedConcurrency: number;
}

export const AWS_LIMITS: Limits = {
  payloadBytes: 262_144,
  historyEvents: MOST_EVENTS,
  distributedConcurrency: 10_000,
};

export interface RuntimeContext {
  readonly region: string;
  readonly account: string;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly executors: Executors;
  /** Children of Distributed Maps by ARN. */
  readonly children: Map<string, Execution>;
  /** Buckets by name; a state that reads an unknown one fails. */
  readonly bucket: (name: string) => ObjectStore | undefined;
  /** Root of every random number. */
  readonly seed: string;
  /** Runs the states of a scope. It is passed in so that a Map can run what contains it without importing it. */
  readonly runStates: (scope: StateScope, input: Payload, branch: Branch) => Promise<Payload>;
  /** The runner waits for this work when it closes, so that no task outlives it. */
  readonly track: (work: Promise<unknown>) => void;
}
