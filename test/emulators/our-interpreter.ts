// A scenario in our own interpreter, on a virtual clock.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskExecutor } from "../../src/asl/executor.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { openRunner } from "../../src/asl/runner.ts";
import { StateError } from "../../src/asl/state-error.ts";
import { openStore } from "../../src/store/open-store.ts";
import { mapRunsOf } from "../asl/map-runs.ts";
import { VirtualClock } from "../asl/virtual-clock.ts";
import { answerTo, type Scenario, SHARDS, shardLines } from "./scenarios.ts";

/** The compared parts of an execution: its end, its states, and the results of its Distributed Maps. */
export interface Ran {
  readonly status: string;
  readonly output?: unknown;
  readonly error?: string;
  /** States of the top level in order, without those inside branches and maps. */
  readonly states: readonly string[];
  readonly maps: readonly MapEnd[];
}

interface MapEnd {
  readonly ended: string;
  readonly succeeded: number;
  readonly failed: number;
}

/** Drops the number of ended children when too many failed, because it depends on which child was faster. */
export function finished({ ended, succeeded, failed }: MapEnd): MapEnd {
  return ended === "FAILED" ? { ended, succeeded: 0, failed: 1 } : { ended, succeeded, failed };
}

const KINDS = ["lambda:invoke", "ecs:runTask", "batch:submitJob", "test:startExecution"];

/** @param definition as it is deployed @param bucket that it names */
export async function runHere(
  definition: string,
  bucket: string,
  name: string,
  { input, answers }: Scenario,
): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), "t1-scenario-"));
  const store = await openStore(folder);
  await store.put(SHARDS.key, shardLines(), { ifNoneMatch: "*" });
  const visits = new Map<string, number>();
  const executor: TaskExecutor = async ({ state, item, resource }, context) => {
    // Count state entries per child, because one child's retries are no other's.
    const key = `${state} ${item}`;
    const visit = visits.get(key) ?? 0;
    visits.set(key, visit + 1);
    const answer = answers[state] === undefined ? undefined : answerTo(answers[state], visit);
    if (answer === undefined) throw new Error(`no answer for visit ${visit} of ${state}`);
    if (resource.pattern === "sync" || resource.pattern === "sync:2") context.submitted({});
    if (answer.Throw !== undefined) throw new StateError(answer.Throw.Error, answer.Throw.Cause);
    return answer.Return as Json;
  };
  const runner = await openRunner({
    // The runner answers startExecution itself, by machines that it has; here it is a task like the others.
    machines: {
      machine: definition.replaceAll(":states:::states:startExecution", ":states:::test:startExecution"),
    },
    executors: Object.fromEntries(KINDS.map(kind => [kind, executor])),
    buckets: { [bucket]: store },
    clock: new VirtualClock(),
    seed: "scenario",
  });
  try {
    const { executionArn } = runner.startExecution({ machine: "machine", name, input: input as Json });
    const { status, output, error } = await runner.result(executionArn);
    const own = new Set(Object.keys(JSON.parse(definition).States));
    return {
      status,
      ...(output !== undefined && { output: JSON.parse(output) }),
      ...(error !== undefined && { error }),
      states: runner.history(executionArn).flatMap(event => {
        const entered = (event as { stateEnteredEventDetails?: { name: string } }).stateEnteredEventDetails;
        return entered !== undefined && own.has(entered.name) ? [entered.name] : [];
      }),
      maps: mapRunsOf(runner, executionArn)
        .map(({ status: ended, succeeded, failed }) => ({ ended, succeeded, failed }))
        .map(finished),
    };
  } finally {
    await runner.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
