// Rules of the language and of the service, each with the public case or the section it comes from.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TaskExecutor } from "../../src/asl/executor.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { StateError } from "../../src/asl/state-error.ts";
import { compileTemplate, evaluateTemplate } from "../../src/asl/value-template.ts";
import { call, detailsOf, executor, machineOf, runMachine } from "./run-machine.ts";

const ok: TaskExecutor = async () => ({ done: true });
const fails =
  (name: string | undefined, cause?: string): TaskExecutor =>
  async () => {
    throw new StateError(name, cause);
  };
const hangs: TaskExecutor = async (_, context) => {
  await context.sleep(1e12);
  return {};
};
const DISTRIBUTED = { ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" } };
const pass = (fields: Record<string, Json> = {}) => ({
  Type: "Pass",
  ...("Next" in fields ? {} : { End: true }),
  ...fields,
});

describe("variables", () => {
  it("B35 keeps a variable over later states, in a Choice rule and in a Catch (localstack#13215)", async () => {
    const { output } = await runMachine(
      machineOf({
        First: pass({ Assign: { a: 1, b: "{% $states.input.x %}" }, Next: "Second" }),
        Second: pass({ Next: "Choose" }),
        Choose: {
          Type: "Choice",
          Choices: [
            { Condition: "{% $a = 1 and $b = 'in' %}", Assign: { c: "{% $a + 1 %}" }, Next: "Fails" },
          ],
          Default: "Lost",
        },
        Lost: { Type: "Fail" },
        Fails: call({
          Catch: [
            {
              ErrorEquals: ["Boom"],
              Assign: { d: "{% $c + 1 %}", e: "{% $states.errorOutput.Error %}" },
              Next: "Last",
            },
          ],
        }),
        Last: pass({ Output: "{% [$a, $b, $c, $d, $e] %}" }),
      }),
      { input: { x: "in" }, executors: executor(fails("Boom")) },
    );
    expect(output).toEqual([1, "in", 2, 3, "Boom"]);
  });

  it("B35 does not let a variable out of a branch or a child", async () => {
    for (const inner of [
      {
        Type: "Parallel",
        Branches: [{ StartAt: "In", States: { In: pass({ Assign: { inner: 1 } }) } }],
        Next: "After",
      },
      {
        Type: "Map",
        Items: [1],
        ItemProcessor: { ...DISTRIBUTED, StartAt: "In", States: { In: pass({ Assign: { inner: 1 } }) } },
        Next: "After",
      },
    ]) {
      const { description } = await runMachine(
        machineOf({ Outer: inner, After: pass({ Output: "{% $inner %}" }) }),
      );
      expect(description.error).toBe("States.QueryEvaluationError");
    }
  });

  it("shows the variables around to branches of a Parallel, and none to children of a Map", async () => {
    const seen = { StartAt: "In", States: { In: pass({ Output: "{% $exists($seen) %}" }) } };
    const run = (inner: Record<string, Json>) =>
      runMachine(machineOf({ Set: pass({ Assign: { seen: 7 }, Next: "Inner" }), Inner: inner }));
    const parallel = { Type: "Parallel", Branches: [seen], End: true };
    const map = { Type: "Map", Items: [1], ItemProcessor: { ...DISTRIBUTED, ...seen }, End: true };
    expect((await run(parallel)).output).toEqual([true]);
    expect((await run(map)).output).toEqual([false]);
  });

  it("evaluates Assign and Output with the variables as they were before the state", async () => {
    const { output } = await runMachine(
      machineOf({
        Set: pass({ Assign: { x: 1, y: 2 }, Next: "Swap" }),
        Swap: pass({ Assign: { x: "{% $y %}", y: "{% $x %}" }, Output: "{% [$x, $y] %}", Next: "Show" }),
        Show: pass({ Output: "{% [$states.input, $x, $y] %}" }),
      }),
    );
    expect(output).toEqual([[1, 2], 2, 1].flat());
  });
});

describe("retries", () => {
  const retrying = (retry: Json[], rest: Record<string, Json> = {}) =>
    machineOf({ Task: call({ Retry: retry, ...rest }) });

  it("B19 fires for the exact name only (catalogue-pipeline#3554)", async () => {
    const run = (name: string) =>
      runMachine(retrying([{ ErrorEquals: [name], MaxAttempts: 4 }]), {
        executors: executor(fails("ECS.AmazonECSException")),
      });
    expect((await run("ECS.AmazonECSException")).types.filter(type => type === "TaskScheduled")).toHaveLength(
      5,
    );
    expect((await run("Ecs.AmazonECSException")).types.filter(type => type === "TaskScheduled")).toHaveLength(
      1,
    );
  });

  it("waits interval · rate^(n-1), at most the maximum (language, Retrying after error)", async () => {
    const retry = {
      ErrorEquals: ["States.ALL"],
      IntervalSeconds: 3,
      BackoffRate: 2,
      MaxAttempts: 5,
      MaxDelaySeconds: 10,
    };
    const { tookMs } = await runMachine(retrying([retry]), { executors: executor(fails("X")) });
    expect(tookMs).toBe(1000 * (3 + 6 + 10 + 10 + 10));
  });

  it("counts every retrier by itself and lets the first that matches decide", async () => {
    const errors = ["A", "B", "A", "B", "A"];
    const { types, description } = await runMachine(
      retrying([
        { ErrorEquals: ["A"], MaxAttempts: 2 },
        { ErrorEquals: ["B"], MaxAttempts: 2 },
        { ErrorEquals: ["States.ALL"], MaxAttempts: 9 },
      ]),
      { executors: executor(async () => Promise.reject(new StateError(errors.shift()))) },
    );
    expect(types.filter(type => type === "TaskFailed")).toHaveLength(5);
    expect(description.error).toBe("A");
  });

  it.each([
    ["States.ALL", "Anything", true],
    ["States.ALL", "States.Timeout", true],
    ["States.ALL", "States.DataLimitExceeded", false],
    ["States.ALL", "States.Runtime", false],
    ["States.ALL", undefined, true],
    ["States.Runtime", "States.Runtime", false],
    ["States.DataLimitExceeded", "States.DataLimitExceeded", true],
    ["States.TaskFailed", "Anything", true],
    ["States.TaskFailed", "States.Timeout", false],
    ["States.TaskFailed", "States.HeartbeatTimeout", false],
    ["States.Timeout", "States.HeartbeatTimeout", true],
    ["States.Timeout", "States.Timeout", true],
  ])("a catcher for %s sees %s: %s (developer guide, Error names)", async (pattern, error, isCaught) => {
    const { description } = await runMachine(
      machineOf({
        Task: call({ Catch: [{ ErrorEquals: [pattern], Next: "Caught" }] }),
        Caught: { Type: "Succeed" },
      }),
      { executors: executor(fails(error)) },
    );
    expect(description.status).toBe(isCaught ? "SUCCEEDED" : "FAILED");
  });

  it("spreads FULL jitter over the whole delay, the same for the same seed", async () => {
    const run = (seed: string) =>
      runMachine(
        retrying([{ ErrorEquals: ["X"], IntervalSeconds: 100, MaxAttempts: 1, JitterStrategy: "FULL" }]),
        {
          executors: executor(fails("X")),
          seed,
        },
      );
    const took = await Promise.all(["a", "b", "c", "d"].map(async seed => (await run(seed)).tookMs));
    expect(new Set(took).size).toBe(4);
    for (const ms of took) expect(ms).toBeLessThanOrEqual(100_000);
    expect((await run("a")).tookMs).toBe(took[0]);
  });

  it("B20 retries a throttle and gives up on the same name without one after its tries (construct-hub PR#415)", async () => {
    const retry = [
      {
        ErrorEquals: ["ECS.InvalidParameterException"],
        MaxAttempts: 3,
        IntervalSeconds: 2,
        JitterStrategy: "FULL",
      },
    ];
    const throttled = await runMachine(retrying(retry), {
      executors: executor(ok),
      faults: [
        {
          kind: "error",
          state: "Task",
          attempts: [1, 2],
          error: "ECS.InvalidParameterException",
          cause: "Rate exceeded",
        },
      ],
    });
    expect(throttled.description.status).toBe("SUCCEEDED");
    expect(throttled.types.filter(type => type === "TaskScheduled")).toHaveLength(3);
    const wrong = await runMachine(retrying(retry), {
      executors: executor(ok),
      faults: [
        { kind: "error", state: "Task", error: "ECS.InvalidParameterException", cause: "Invalid subnet" },
      ],
    });
    expect(wrong.description).toMatchObject({ status: "FAILED", cause: "Invalid subnet" });
    expect(wrong.types.filter(type => type === "TaskScheduled")).toHaveLength(4);
  });

  it("B29 gets 60 jobs through a bucket of 50 a second (Netflix/metaflow#1185)", async () => {
    const { description, types } = await runMachine(
      machineOf({
        Map: {
          Type: "Map",
          Items: "{% $range(1, 60, 1) %}",
          ItemProcessor: {
            ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
            StartAt: "Submit",
            States: {
              Submit: call({
                Retry: [
                  { ErrorEquals: ["Batch.TooManyRequestsException"], MaxAttempts: 8, JitterStrategy: "FULL" },
                ],
                Output: "{% 1 %}",
              }),
            },
          },
          End: true,
        },
      }),
      {
        executors: executor(ok),
        faults: [
          {
            kind: "throttle",
            resource: "test:call",
            burst: 50,
            perSecond: 50,
            error: "Batch.TooManyRequestsException",
          },
        ],
      },
    );
    expect(description.status).toBe("SUCCEEDED");
    expect(types).toContain("MapRunSucceeded");
  });
});

describe("times", () => {
  const inner = { StartAt: "Hang", States: { Hang: call() } };

  it.each<[string, Record<string, Json>, TaskExecutor]>([
    [
      "a nested run",
      {
        Task: call({
          Resource: "arn:aws:states:::states:startExecution.sync:2",
          Arguments: { StateMachineArn: "x:nested" },
        }),
      },
      hangs,
    ],
    [".sync", { Task: call({ Resource: "arn:aws:states:::test:call.sync" }) }, hangs],
    ["a Parallel", { Task: { Type: "Parallel", Branches: [inner], End: true } }, hangs],
    [
      "a Map",
      { Task: { Type: "Map", Items: [1], ItemProcessor: { ...DISTRIBUTED, ...inner }, End: true } },
      hangs,
    ],
    ["a Wait", { Task: { Type: "Wait", Seconds: 100, End: true } }, hangs],
  ])(
    "B37 ends the machine at its limit while it is blocked in %s (floci#2733, #2779)",
    async (_, states, run) => {
      const { description, events, tookMs } = await runMachine(machineOf(states, { TimeoutSeconds: 3 }), {
        executors: executor(run),
        machines: { nested: machineOf({ Hang: call() }) },
      });
      expect(description.status).toBe("TIMED_OUT");
      expect(description).not.toHaveProperty("error");
      expect(tookMs).toBe(3000);
      expect(events.at(-1)).toMatchObject({
        type: "ExecutionTimedOut",
        executionTimedOutEventDetails: { error: "States.Timeout" },
      });
    },
  );

  it("B37 ends a task at its limit, with an error and no cause", async () => {
    const timedOut = await runMachine(machineOf({ Task: call({ TimeoutSeconds: 5 }) }), {
      executors: executor(hangs),
    });
    expect(timedOut.description.error).toBe("States.Timeout");
    expect(timedOut.description).not.toHaveProperty("cause");
    expect(detailsOf(timedOut.events, "TaskTimedOut")).toEqual([
      { resource: "call", resourceType: "test", error: "States.Timeout" },
    ]);
    expect(timedOut.tookMs).toBe(5000);
  });
});

describe("limits", () => {
  it("ends at event 25,000, which is the failure itself (floci#2734)", async () => {
    const { description, events } = await runMachine(
      machineOf({ Loop: { Type: "Choice", Choices: [{ Condition: true, Next: "Loop" }] } }),
    );
    expect(description).toMatchObject({ status: "FAILED", error: "States.Runtime" });
    expect(events).toHaveLength(25_000);
    expect(events.at(-1)).toMatchObject({ id: 25_000, type: "ExecutionFailed" });
  });

  it("B43 fails a Map whose results do not fit into 256 KiB, after all of it is done", async () => {
    const { description, children } = await runMachine(
      machineOf({
        Map: {
          Type: "Map",
          Items: "{% [1..5000] %}",
          ItemProcessor: {
            ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
            StartAt: "Big",
            States: { Big: pass({ Output: "x".repeat(100) }) },
          },
          End: true,
        },
      }),
    );
    expect(description.error).toBe("States.DataLimitExceeded");
    expect(children.filter(({ status }) => status === "SUCCEEDED")).toHaveLength(5000);
  });

  it("counts bytes of UTF-8, to the byte", async () => {
    const run = (text: string) =>
      runMachine(machineOf({ Out: pass({ Output: text }) }), { limits: { payloadBytes: 20 } });
    expect((await run("ä".repeat(9))).description.status).toBe("SUCCEEDED"); // 18 bytes and two quotes
    expect((await run(`${"ä".repeat(9)}a`)).description.error).toBe("States.DataLimitExceeded");
  });

  it("stops an expression without end", async () => {
    const { description } = await runMachine(
      machineOf({ Out: pass({ Output: "{% ($f := function($x) { 1 + $f($x) }; $f(1)) %}" }) }),
    );
    expect(description).toMatchObject({
      error: "States.QueryEvaluationError",
      cause: expect.stringContaining("D1011"),
    });
  });

  it("times every expression by itself, however many are evaluated", async () => {
    const seen: string[] = [];
    const evaluate = (name: string) =>
      evaluateTemplate(compileTemplate("{% [$mark(1), $mark(2), $mark(3)] %}", "Output", "test"), {
        mark: async (step: number) => {
          seen.push(`${name}${step}`);
          return step;
        },
      });
    await Promise.all(["a", "b", "c"].map(evaluate));
    expect(seen.join(" ")).toBe("a1 a2 a3 b1 b2 b3 c1 c2 c3");
  });

  it("has no $eval", async () => {
    const { description } = await runMachine(machineOf({ Out: pass({ Output: "{% $eval('1 + 1') %}" }) }));
    expect(description.cause).toContain("T1006: Attempted to invoke a non-function");
  });
});

describe("maps", () => {
  it("B32 gives each of two maps, and of a map inside a map, a run of its own (localstack#10662, #12335)", async () => {
    const distributed = (states: Json, rest: Record<string, Json> = {}) => ({
      Type: "Map",
      ItemProcessor: {
        ...DISTRIBUTED,
        StartAt: Object.keys(states as object)[0],
        States: states,
      },
      ...("Next" in rest ? {} : { End: true }),
      ...rest,
    });
    const { output, mapRuns, types } = await runMachine(
      machineOf({
        One: distributed({ A: pass({ Output: "{% $states.input * 2 %}" }) }, { Items: [1, 2], Next: "Two" }),
        Two: distributed({
          Inner: distributed(
            { C: pass({ Output: "{% $states.input + 1 %}" }) },
            { Items: "{% [$states.input, 10] %}" },
          ),
        }),
      }),
    );
    expect(output).toEqual([
      [3, 11],
      [5, 11],
    ]);
    expect(types.filter(type => type === "MapRunStarted")).toHaveLength(2);
    expect(new Set(mapRuns.map(run => run.arn)).size).toBe(2);
  });

  it("B34 gives ItemSelector the item, and Output the result (localstack#12061, #12048)", async () => {
    const { output } = await runMachine(
      machineOf({
        Map: {
          Type: "Map",
          Items: "{% $states.input.list %}",
          ItemSelector: {
            at: "{% $states.context.Map.Item.Index %}",
            value: "{% $states.context.Map.Item.Value %}",
            run: "{% $states.input.run %}",
          },
          ItemProcessor: {
            ...DISTRIBUTED,
            StartAt: "In",
            States: { In: pass({ Output: "{% $states.input %}" }) },
          },
          Output: {
            first: "{% $states.result[0] %}",
            count: "{% $count($states.result) %}",
            input: "{% $states.input.run %}",
          },
          End: true,
        },
      }),
      { input: { list: ["a", "b"], run: 7 } },
    );
    expect(output).toEqual({ first: { at: 0, value: "a", run: 7 }, count: 2, input: 7 });
  });

  it("B41 isolates a poisoned item where it is tolerated (metaflow#2982)", async () => {
    const { output, mapRuns } = await runMachine(tolerant({ ToleratedFailureCount: 1 }, 5), {
      executors: executor(poison([3])),
    });
    expect(
      (output as Json[]).map((item, index) => (index === 3 ? (item as { Error: string }).Error : item)),
    ).toEqual([0, 1, 2, "Poison", 4]);
    expect(mapRuns).toMatchObject([{ status: "SUCCEEDED", succeeded: 4, failed: 1 }]);
  });

  it("fails for any count and percentage exactly when more items failed than are tolerated", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 0, max: 11 }), { maxLength: 12 }),
        fc.option(fc.integer({ min: 0, max: 12 }), { nil: undefined }),
        fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
        fc.integer({ min: 1, max: 12 }),
        async (poisoned, count, percentage, concurrency) => {
          const { description, types } = await runMachine(
            tolerant(
              {
                MaxConcurrency: concurrency,
                ...(count !== undefined && { ToleratedFailureCount: count }),
                ...(percentage !== undefined && { ToleratedFailurePercentage: percentage }),
              },
              12,
            ),
            { executors: executor(poison(poisoned)) },
          );
          const isTooMany =
            (count === undefined && percentage === undefined && poisoned.length > 0) ||
            (count !== undefined && poisoned.length > count) ||
            (percentage !== undefined && poisoned.length / 12 > percentage / 100);
          expect(description.error).toBe(isTooMany ? "States.ExceedToleratedFailureThreshold" : undefined);
          expect(types.includes("MapRunFailed")).toBe(isTooMany);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("never runs more items at once than MaxConcurrency, and all of them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 25 }),
        fc.integer({ min: 0, max: 8 }),
        async (durations, concurrency) => {
          let now = 0;
          let most = 0;
          const timed: TaskExecutor = async ({ arguments: { ms } }, { sleep }) => {
            most = Math.max(most, ++now);
            await sleep(Number(ms));
            now--;
            return Number(ms);
          };
          const { output } = await runMachine(
            machineOf({
              Map: {
                Type: "Map",
                Items: durations,
                MaxConcurrency: concurrency,
                ItemProcessor: {
                  ...DISTRIBUTED,
                  StartAt: "Do",
                  States: { Do: call({ Arguments: { ms: "{% $states.input %}" } }) },
                },
                End: true,
              },
            }),
            { executors: executor(timed) },
          );
          expect(output).toEqual(durations);
          expect(most).toBe(Math.min(durations.length, concurrency === 0 ? 40 : concurrency));
        },
      ),
      { numRuns: 40 },
    );
  });

  it("aborts what runs when too much has failed, and starts no more", async () => {
    const { children, description, mapRuns } = await runMachine(tolerant({ MaxConcurrency: 2 }, 5), {
      executors: executor(async ({ arguments: { item } }, { sleep }) => {
        if (item === 1) throw new StateError("Poison");
        await sleep(1000);
        return Number(item);
      }),
    });
    expect(description.error).toBe("States.ExceedToleratedFailureThreshold");
    expect(children.map(({ status }) => status)).toEqual(["ABORTED", "FAILED"]);
    expect(mapRuns).toMatchObject([{ status: "FAILED", succeeded: 0, failed: 1, aborted: 1 }]);
  });
});

function tolerant(fields: Record<string, Json>, count: number): Json {
  return machineOf({
    Map: {
      Type: "Map",
      Items: Array.from({ length: count }, (_, index) => index),
      ItemProcessor: {
        ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
        StartAt: "Do",
        States: { Do: call({ Arguments: { item: "{% $states.input %}" } }) },
      },
      ...fields,
      End: true,
    },
  });
}

function poison(items: readonly number[]): TaskExecutor {
  return async ({ arguments: { item } }) => {
    if (items.includes(Number(item))) throw new StateError("Poison");
    return Number(item);
  };
}

describe("nested executions", () => {
  const parent = (pattern: string, rest: Record<string, Json> = {}) =>
    machineOf({
      Start: call({
        Resource: `arn:aws:states:::states:startExecution${pattern}`,
        Arguments: {
          StateMachineArn: "arn:aws:states:us-east-1:000000000000:stateMachine:child",
          Input: { x: 1 },
          Name: "one",
        },
        ...rest,
      }),
    });

  it("answers .sync with texts and .sync:2 with JSON (recorded on AWS)", async () => {
    const machines = { child: machineOf({ Out: pass({ Output: { Arg1: "{% $states.input.x %}" } }) }) };
    expect((await runMachine(parent(".sync"), { machines })).output).toMatchObject({
      Input: '{"x":1}',
      Output: '{"Arg1":1}',
      Status: "SUCCEEDED",
      Name: "one",
    });
    expect((await runMachine(parent(".sync:2"), { machines })).output).toMatchObject({
      Input: { x: 1 },
      Output: { Arg1: 1 },
      Status: "SUCCEEDED",
    });
  });

  it("fails with States.TaskFailed and the child's error in the cause", async () => {
    const machines = { child: machineOf({ Out: { Type: "Fail", Error: "SomeFailure", Cause: "why" } }) };
    const { description } = await runMachine(parent(".sync:2"), { machines });
    expect(description.error).toBe("States.TaskFailed");
    expect(JSON.parse(description.cause ?? "")).toMatchObject({
      Error: "SomeFailure",
      Cause: "why",
      Status: "FAILED",
    });
  });

  it("stops the child when the parent is stopped", async () => {
    const machines = { child: machineOf({ Hang: call() }) };
    let childStatus = () => "";
    await runMachine(parent(".sync:2", { TimeoutSeconds: 5 }), {
      machines,
      executors: executor(hangs),
      during: runner => {
        childStatus = () =>
          runner.describe("arn:aws:states:us-east-1:000000000000:execution:child:one").status;
      },
    });
    expect(childStatus()).toBe("ABORTED");
  });
});

describe("executions", () => {
  it("start once under a name while they run with the same input, and refuse another", async () => {
    await runMachine(machineOf({ Wait: { Type: "Wait", Seconds: 10, End: true } }), {
      during: (runner, arn) => {
        expect(runner.startExecution({ machine: "main", name: "run", input: {} }).executionArn).toBe(arn);
        expect(() => runner.startExecution({ machine: "main", name: "run", input: { other: 1 } })).toThrow(
          "execution exists already",
        );
      },
    });
  });

  it("keep the error and cause of a stop, and record nothing after it (floci PR#2782)", async () => {
    let isAborted = false;
    const { description, events } = await runMachine(
      machineOf({ Task: call({ Next: "Later" }), Later: pass() }),
      {
        executors: executor(async (_, { signal, sleep }) => {
          signal.addEventListener("abort", () => {
            isAborted = true;
          });
          await sleep(1e9);
          return {};
        }),
        during: (runner, arn) =>
          setImmediate(() => runner.stopExecution(arn, { error: "Me", cause: "because" })),
      },
    );
    expect(description).toMatchObject({ status: "ABORTED", error: "Me", cause: "because" });
    expect(events.at(-1)).toMatchObject({
      type: "ExecutionAborted",
      executionAbortedEventDetails: { error: "Me", cause: "because" },
    });
    expect(isAborted).toBe(true);
  });

  it("fail with States.NoChoiceMatched where no rule holds", async () => {
    const { description } = await runMachine(
      machineOf({
        Choose: { Type: "Choice", Choices: [{ Condition: "{% false %}", Next: "X" }] },
        X: pass(),
      }),
    );
    expect(description.error).toBe("States.NoChoiceMatched");
  });
});
