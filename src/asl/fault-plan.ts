// Faults that a test wants to see: a named error at a state, try or item, or a service that throttles. They fail the
// task before its executor is called.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import type { Clock } from "./clock.ts";
import type { TaskRequest } from "./executor.ts";
import { executorKey } from "./resource.ts";
import { StateError } from "./state-error.ts";

const StateFault = z.strictObject({
  kind: z.literal("error"),
  state: z.string(),
  /** 1 is the first try; left out: every try */
  attempts: z.array(z.int().min(1)).optional(),
  items: z.array(z.int().min(0)).optional(),
  /** How often at most. */
  times: z.int().min(1).optional(),
  error: z.string(),
  cause: z.string().optional(),
});

/** A token bucket, as AWS throttles its APIs: `burst` calls at once, `perSecond` in the long run. */
const ThrottleFault = z.strictObject({
  kind: z.literal("throttle"),
  /** `ecs:runTask` */
  resource: z.string(),
  burst: z.number().min(1),
  perSecond: z.number().min(0),
  error: z.string(),
  cause: z.string().optional(),
});

export const FaultPlan = z.array(z.discriminatedUnion("kind", [StateFault, ThrottleFault]));
export type FaultPlan = z.input<typeof FaultPlan>;
type StateFault = z.output<typeof StateFault>;
type ThrottleFault = z.output<typeof ThrottleFault>;

export type Faults = (request: TaskRequest) => StateError | undefined;

/**
 * @param taskStates names of all Task states that the runner knows
 * @throws InputError for a fault at a state that does not exist: it would never fire and the test would pass
 */
export function openFaults(plan: FaultPlan, taskStates: ReadonlySet<string>, clock: Clock): Faults {
  const parsed = FaultPlan.safeParse(plan);
  if (!parsed.success)
    throw new InputError(
      { what: "invalid fault plan", expected: z.prettifyError(parsed.error) },
      { cause: parsed.error },
    );
  const checks = parsed.data.map(fault => {
    if (fault.kind === "throttle") return throttle(fault, clock);
    if (!taskStates.has(fault.state))
      throw new InputError({
        what: "fault at no state",
        where: fault.state,
        expected: `expected a Task state: ${[...taskStates].join(", ")}`,
      });
    return atState(fault);
  });
  return request => {
    for (const check of checks) {
      const error = check(request);
      if (error !== undefined) return error;
    }
    return undefined;
  };
}

function atState({
  state,
  attempts,
  items,
  times = Number.POSITIVE_INFINITY,
  error,
  cause,
}: StateFault): Faults {
  let fired = 0;
  return request => {
    if (request.state !== state || fired >= times) return undefined;
    if (attempts !== undefined && !attempts.includes(request.attempt)) return undefined;
    if (items !== undefined && !items.includes(request.item ?? -1)) return undefined;
    fired++;
    return new StateError(error, cause);
  };
}

function throttle(
  { resource, burst, perSecond, error, cause = "Rate exceeded" }: ThrottleFault,
  clock: Clock,
): Faults {
  let tokens = burst;
  let countedMs = clock.now();
  return request => {
    if (executorKey(request.resource) !== resource) return undefined;
    tokens = Math.min(burst, tokens + ((clock.now() - countedMs) / 1000) * perSecond);
    countedMs = clock.now();
    if (tokens < 1) return new StateError(error, cause);
    tokens--;
    return undefined;
  };
}
