// Runs one machine on a virtual clock and returns all that a test can ask about it.
import type { ExecutionDescription } from "../../src/asl/description.ts";
import type { TaskExecutor } from "../../src/asl/executor.ts";
import type { HistoryEvent } from "../../src/asl/history.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { type LocalRunner, openRunner, type RunnerOptions } from "../../src/asl/runner.ts";
import { type FaultPlan, withFaults } from "./fault-plan.ts";
import { type MapRun, mapRunsOf } from "./map-runs.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface Ran {
  readonly arn: string;
  readonly description: ExecutionDescription;
  readonly output: Json | undefined;
  readonly events: readonly HistoryEvent[];
  readonly types: readonly string[];
  readonly mapRuns: readonly MapRun[];
  readonly children: readonly ExecutionDescription[];
  /** Virtual milliseconds from start to end. */
  readonly tookMs: number;
}

export function machineOf(
  states: Record<string, Json>,
  rest: Record<string, Json> = {},
): Record<string, Json> {
  return { QueryLanguage: "JSONata", StartAt: Object.keys(states)[0], States: states, ...rest };
}

export async function runMachine(
  definition: Json,
  {
    input = {},
    during,
    machines = {},
    faults = [],
    executors = {},
    ...options
  }: Partial<RunnerOptions> & {
    readonly input?: Json;
    readonly faults?: FaultPlan;
    readonly during?: (runner: LocalRunner, arn: string) => void;
  } = {},
): Promise<Ran> {
  const clock = options.clock ?? new VirtualClock();
  const startMs = clock.now();
  const all = { main: definition, ...machines };
  const runner = await openRunner({
    seed: "test",
    clock,
    ...options,
    machines: all,
    executors: withFaults(executors, faults, Object.values(all), clock),
  });
  try {
    const { executionArn: arn } = runner.startExecution({ machine: "main", input, name: "run" });
    during?.(runner, arn);
    const description = await runner.result(arn);
    const events = runner.history(arn);
    return {
      arn,
      description,
      output: description.output === undefined ? undefined : JSON.parse(description.output),
      events: [...events],
      types: events.map(({ type }) => type),
      mapRuns: mapRunsOf(runner, arn),
      children: runner.children(arn),
      tookMs: clock.now() - startMs,
    };
  } finally {
    await runner.close();
  }
}

/** A task state that calls `test:call`. */
export function call(fields: Record<string, Json> = {}): Record<string, Json> {
  const ends: Record<string, Json> = "Next" in fields ? {} : { End: true };
  return { Type: "Task", Resource: "arn:aws:states:::test:call", ...ends, ...fields };
}

export function executor(run: TaskExecutor): { readonly "test:call": TaskExecutor } {
  return { "test:call": run };
}

/** The details of all events of a type. */
export function detailsOf(events: readonly HistoryEvent[], type: string): readonly Record<string, unknown>[] {
  return events
    .filter(event => event.type === type)
    .map(
      event =>
        (Object.entries(event).find(([key]) => key.endsWith("EventDetails"))?.[1] ?? {}) as Record<
          string,
          unknown
        >,
    );
}
