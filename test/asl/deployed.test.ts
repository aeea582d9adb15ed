// The deployed machines when the infrastructure fails: Spot that is taken away, programs that refuse their input. These
// tests do not care for the work of the tasks, so executors only answer.
import { beforeAll, describe, expect, it } from "vitest";
import { type Assembly, readAssembly } from "../../src/asl/assembly.ts";
import type { Executors } from "../../src/asl/executor.ts";
import { batchExecutor } from "../../src/asl/executors/batch.ts";
import { ecsExecutor } from "../../src/asl/executors/ecs.ts";
import { lambdaExecutor } from "../../src/asl/executors/lambda.ts";
import type { Program } from "../../src/asl/executors/program.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { openRunner } from "../../src/asl/runner.ts";
import { synthesizedAssembly } from "../../src/local/synthesized-assembly.ts";
import { temporaryStore } from "../store/temporary-store.ts";
import { type FaultPlan, withFaults } from "./fault-plan.ts";
import { VirtualClock } from "./virtual-clock.ts";

let assembly: Assembly;
beforeAll(async () => {
  assembly = readAssembly(await synthesizedAssembly());
}, 120_000);

const SHARDS_KEY = "runs/r/iterations/000000/shards/x.jsonl";
const answers: Readonly<Record<string, Json>> = {
  plan: {
    phase: "runs/r/iterations/000000/",
    policyVersion: 0,
    shardCount: 10,
    shardsKey: SHARDS_KEY,
    pool: {},
  },
  prepare: { ready: true, waiting: 0 },
  score: { lostCount: 0 },
  close: { episodeCount: 10 },
  publish: { version: 1, evaluationDue: false },
};

/** A program that ends with these codes, one after the other, and then with 0. */
function ending(...codes: number[]): Program {
  return { kind: "function", run: async () => ({ exitCode: codes.shift() ?? 0 }) };
}

async function iterate({
  driver = ending(),
  trainer = ending(),
  faults = [],
}: {
  readonly driver?: Program;
  readonly trainer?: Program;
  readonly faults?: FaultPlan;
}) {
  const store = await temporaryStore();
  const shards = Array.from({ length: 10 }, (_, shard) => ({
    ...{ run: "r", phase: "runs/r/iterations/000000/", shard, episodes: String(shard), policyVersion: 0 },
  }));
  await store.put(SHARDS_KEY, shards.map(shard => `${JSON.stringify(shard)}\n`).join(""), {
    ifNoneMatch: "*",
  });
  const published: Json[] = [];
  const functions = Object.entries(answers).map(([name, answer]) => [
    name,
    {
      handler: async (event: Json) => {
        if (name === "publish") published.push(event);
        return answer;
      },
    },
  ]);
  const executors: Executors = {
    "lambda:invoke": lambdaExecutor(Object.fromEntries(functions)),
    "ecs:runTask": ecsExecutor({
      "t1-driver": { containers: [{ name: "driver", image: "x", program: driver }] },
    }),
    "batch:submitJob": batchExecutor({
      definitions: { "t1-train": { program: trainer } },
      queues: Object.fromEntries(assembly.queues.map(name => [name, {}])),
    }),
  };
  const clock = new VirtualClock();
  const runner = await openRunner({
    seed: "deployed",
    clock,
    machines: assembly.machines,
    executors: withFaults(executors, faults, Object.values(assembly.machines), clock),
    buckets: Object.fromEntries(assembly.buckets.map(name => [name, store])),
  });
  const ended = await runner.run({
    machine: "t1-iteration",
    name: "r-s1-i000000",
    input: { run: "r", iteration: 0, overlap: false, last: true },
  });
  const states = runner
    .history(ended.executionArn)
    .flatMap(({ type, stateEnteredEventDetails: details }) =>
      type.endsWith("StateEntered") ? [(details as { name: string }).name] : [],
    );
  await runner.close();
  return { ended, states, published };
}

describe("an iteration", () => {
  it("B25: goes on when Spot was taken from a group and from training: both are done on demand", async () => {
    const { ended, states, published } = await iterate({ driver: ending(137), trainer: ending(75) });
    expect([ended.status, ended.error]).toEqual(["SUCCEEDED", undefined]);
    expect(states).toContain("TrainOnDemand");
    expect(published).toMatchObject([{ training: { market: "on-demand" } }]);
  });

  it("tries a program that refuses its input, or has a bug, on no second market", async () => {
    for (const [code, error] of [
      [2, "InputError"],
      [70, "InvariantError"],
    ] as const) {
      const { ended, states } = await iterate({ trainer: ending(code) });
      expect([ended.status, ended.error]).toEqual(["FAILED", error]);
      expect(states).not.toContain("TrainOnDemand");
    }
  });

  it("bears a group in ten that fails, and not two", async () => {
    expect((await iterate({ driver: ending(2) })).ended.status).toBe("SUCCEEDED");
    expect((await iterate({ driver: ending(2, 2) })).ended).toMatchObject({
      status: "FAILED",
      error: "States.ExceedToleratedFailureThreshold",
    });
  });

  it("B20, B29: waits out throttled starts of tasks and jobs", async () => {
    const { ended } = await iterate({
      faults: [
        { kind: "error", state: "PlayOnSpot", attempts: [1, 2], error: "ECS.AmazonECSException" },
        { kind: "error", state: "TrainOnSpot", attempts: [1, 2, 3], error: "Batch.AWSBatchException" },
      ],
    });
    expect([ended.status, ended.error]).toEqual(["SUCCEEDED", undefined]);
  });
});
