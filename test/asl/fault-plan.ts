// Faults that a test wants to see: a named error at a state, try or item, or a service that throttles. A fault fails the
// task before its executor is called.
import type { Clock } from "../../src/asl/clock.ts";
import type { Executors, TaskRequest } from "../../src/asl/executor.ts";
import { isJsonObject, type Json } from "../../src/asl/json-value.ts";
import { executorKey } from "../../src/asl/resource.ts";
import { StateError } from "../../src/asl/state-error.ts";

interface StateFault {
  readonly kind: "error";
  readonly state: string;
  /** 1 is the first try; every try by default. */
  readonly attempts?: readonly number[];
  readonly items?: readonly number[];
  readonly error: string;
  readonly cause?: string;
}

/** A token bucket, as AWS throttles its APIs: `burst` calls at once, `perSecond` in the long run. */
interface ThrottleFault {
  readonly kind: "throttle";
  /** `ecs:runTask` */
  readonly resource: string;
  readonly burst: number;
  readonly perSecond: number;
  readonly error: string;
  readonly cause?: string;
}

export type FaultPlan = readonly (StateFault | ThrottleFault)[];

/**
 * @param definitions of the machines that run
 * @throws Error for a fault at a state that does not exist: it would never fire and the test would pass
 */
export function withFaults(
  executors: Executors,
  plan: FaultPlan,
  definitions: readonly (string | Json)[],
  clock: Clock,
): Executors {
  const known = new Set(
    definitions.flatMap(one => taskStates(typeof one === "string" ? JSON.parse(one) : one)),
  );
  for (const fault of plan)
    if (fault.kind === "error" && !known.has(fault.state))
      throw new Error(`fault at no state: ${fault.state}`);
  const checks = plan.map(fault => (fault.kind === "throttle" ? throttle(fault, clock) : atState(fault)));
  return Object.fromEntries(
    Object.entries(executors).map(([key, executor]) => [
      key,
      (request, context) => {
        for (const check of checks) check(request);
        return executor(request, context);
      },
    ]),
  );
}

/** Names of all Task states, also of those in branches and item processors. */
function taskStates(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(taskStates);
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, field = null]) => [
    ...(isJsonObject(field) && field.Type === "Task" ? [name] : []),
    ...taskStates(field),
  ]);
}

type Check = (request: TaskRequest) => void;

function atState({ state, attempts, items, error, cause }: StateFault): Check {
  return request => {
    const isMeant =
      request.state === state &&
      (attempts?.includes(request.attempt) ?? true) &&
      (items?.includes(request.item ?? -1) ?? true);
    if (isMeant) throw new StateError(error, cause);
  };
}

function throttle({ resource, burst, perSecond, error, cause }: ThrottleFault, clock: Clock): Check {
  let tokens = burst;
  let countedMs = clock.now();
  return request => {
    if (executorKey(request.resource) !== resource) return;
    tokens = Math.min(burst, tokens + ((clock.now() - countedMs) / 1000) * perSecond);
    countedMs = clock.now();
    if (tokens < 1) throw new StateError(error, cause);
    tokens--;
  };
}
