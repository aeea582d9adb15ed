// Which tries of a Batch job are made again, with jobs that are processes and really die.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readAssembly } from "../../src/asl/assembly.ts";
import type { Executors } from "../../src/asl/executor.ts";
import { batchExecutor, type JobDefinition } from "../../src/asl/executors/batch.ts";
import { RetryStrategy } from "../../src/asl/executors/batch-retry.ts";
import { type Program, type ProgramEnd, runProgram } from "../../src/asl/executors/program.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { executorsHere } from "../../src/local/executors.ts";
import { synthesizedAssembly } from "../../src/local/synthesized-assembly.ts";
import { temporaryStore } from "../store/temporary-store.ts";
import { machineOf, runMachine } from "./run-machine.ts";

const assembly = readAssembly(await synthesizedAssembly());

interface Job {
  readonly Status: string;
  readonly StatusReason: string;
  readonly Attempts: readonly {
    readonly Container: { readonly ExitCode?: number };
    readonly StatusReason: string;
  }[];
}

async function submit(executors: Executors, fields: Record<string, Json>) {
  const { description, output } = await runMachine(
    machineOf({
      Train: {
        Type: "Task",
        Resource: "arn:aws:states:::batch:submitJob.sync",
        Arguments: { JobName: "train", JobQueue: "gpu", JobDefinition: "trainer", ...fields },
        End: true,
      },
    }),
    { executors },
  );
  return { error: description.error, cause: description.cause, job: output as Job | undefined };
}

/** @returns the job, also of one that failed */
async function run(definition: JobDefinition, fields: Record<string, Json> = {}): Promise<Job> {
  const executor = batchExecutor({ definitions: { trainer: definition }, queues: { gpu: {} } });
  const { error, cause, job } = await submit({ "batch:submitJob": executor }, fields);
  if (job !== undefined) return job;
  expect(error).toBe("States.TaskFailed");
  return JSON.parse(cause ?? "");
}

const shell = (script: string): Program => ({ kind: "process", entryPoint: ["/bin/sh", "-c", script] });
const exitCodes = ({ Attempts }: Job) => Attempts.map(({ Container }) => Container.ExitCode);

const THREE_OR_KILLED = [
  { Action: "RETRY", OnExitCode: "3" },
  { Action: "RETRY", OnExitCode: "13*" },
  { Action: "EXIT", OnReason: "*" },
];

describe("tries of a Batch job", () => {
  it.each<[string, string, object, (number | undefined)[]]>([
    ["a single one where nothing is said", "exit 3", {}, [3]],
    ["all of them without rules", "exit 3", { Attempts: 3 }, [3, 3, 3]],
    [
      "those that a rule wants again, by exit code",
      "exit 3",
      { Attempts: 3, EvaluateOnExit: THREE_OR_KILLED },
      [3, 3, 3],
    ],
    ["none more where a rule says so", "exit 4", { Attempts: 3, EvaluateOnExit: THREE_OR_KILLED }, [4]],
    [
      "killed by a signal, until one succeeds",
      '[ "$AWS_BATCH_JOB_ATTEMPT" = 3 ] || kill -KILL $$',
      { Attempts: 5, EvaluateOnExit: THREE_OR_KILLED },
      [137, 137, 0],
    ],
    [
      "killed by another signal, by its own code",
      "kill -BUS $$",
      { Attempts: 3, EvaluateOnExit: [{ Action: "EXIT", OnExitCode: "135" }] },
      [135],
    ],
    [
      "the first rule that fits, not the best",
      "exit 3",
      {
        Attempts: 3,
        EvaluateOnExit: [
          { Action: "exit", OnExitCode: "*" },
          { Action: "retry", OnExitCode: "3" },
        ],
      },
      [3],
    ],
    [
      "a rule fits with all of its conditions only, and what no rule fits is tried again",
      "exit 3",
      { Attempts: 2, EvaluateOnExit: [{ Action: "EXIT", OnExitCode: "3", OnReason: "OutOfMemory*" }] },
      [3, 3],
    ],
    [
      "without * the whole code has to be equal",
      "exit 31",
      { Attempts: 2, EvaluateOnExit: [{ Action: "EXIT", OnExitCode: "3" }] },
      [31, 31],
    ],
    [
      "what the attempt's reason says, which is not the container's",
      "exit 3",
      {
        Attempts: 4,
        EvaluateOnExit: [
          { Action: "EXIT", OnReason: "Essential*" },
          { Action: "RETRY", OnStatusReason: "Essential container*" },
        ],
      },
      [3, 3, 3, 3],
    ],
  ])("%s", async (_, script, retry, expected) => {
    const job = await run({ program: shell(script), retryStrategy: RetryStrategy.parse(retry) });
    expect(exitCodes(job)).toEqual(expected);
    expect(job.Status).toBe(expected.at(-1) === 0 ? "SUCCEEDED" : "FAILED");
  });

  it("a program that is not there did not start", async () => {
    const strategy = {
      Attempts: 2,
      EvaluateOnExit: [{ Action: "EXIT", OnStatusReason: "Task failed to start" }],
    };
    const job = await run({
      program: { kind: "process", entryPoint: ["/no/such/program"] },
      retryStrategy: RetryStrategy.parse(strategy),
    });
    expect(job).toMatchObject({ StatusReason: "Task failed to start", Attempts: [{ Container: {} }] });
    expect(exitCodes(job)).toEqual([undefined]);
  });

  it("the request's strategy takes the place of the definition's, rules and all", async () => {
    const definition = {
      program: shell("exit 4"),
      retryStrategy: RetryStrategy.parse({ Attempts: 9, EvaluateOnExit: THREE_OR_KILLED }),
    };
    expect(exitCodes(await run(definition, { RetryStrategy: { Attempts: 2 } }))).toEqual([4, 4]);
  });

  it("what ran out of time is not tried again, whatever the rules say; the request's limit counts", async () => {
    const definition = {
      program: shell('[ "$AWS_BATCH_JOB_ATTEMPT" = 1 ] && exit 3; sleep 2 & wait'),
      retryStrategy: RetryStrategy.parse({ Attempts: 5 }),
      timeoutSeconds: 1,
    };
    const job = await run(definition);
    expect(exitCodes(job)).toEqual([3, 143]);
    expect(job.Attempts.map(({ StatusReason }) => StatusReason)).toEqual([
      "Essential container in task exited",
      "Job attempt duration exceeded timeout",
    ]);
    const longer = await run(definition, { Timeout: { AttemptDurationSeconds: 60 } });
    expect(exitCodes(longer)).toEqual([3, 0]);
  });

  it.each<[string, Json]>([
    ["rules without a number of tries", { EvaluateOnExit: THREE_OR_KILLED }],
    ["more than five rules", { Attempts: 2, EvaluateOnExit: Array(6).fill(THREE_OR_KILLED[0]) }],
    ["more than ten tries", { Attempts: 11 }],
    ["another action", { Attempts: 2, EvaluateOnExit: [{ Action: "WAIT" }] }],
    ["letters for an exit code", { Attempts: 2, EvaluateOnExit: [{ Action: "EXIT", OnExitCode: "x" }] }],
    ["a * inside", { Attempts: 2, EvaluateOnExit: [{ Action: "EXIT", OnReason: "Host*lost" }] }],
  ])("refuses %s", async (_, strategy) => {
    const executor = batchExecutor({
      definitions: { trainer: { program: shell("exit 0") } },
      queues: { gpu: {} },
    });
    const { error } = await submit({ "batch:submitJob": executor }, { RetryStrategy: strategy });
    expect(error).toBe("Batch.ClientException");
  });
});

describe("a training job on this machine", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "t1-batch-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Submits what the machines submit, as a run of this machine does. @returns attempts, as the job saw them */
  async function train(ended: ProgramEnd | undefined, script: string): Promise<string[]> {
    const seen = join(folder, "seen");
    const process = shell(`echo $AWS_BATCH_JOB_ATTEMPT >> ${seen}; ${script}`);
    const trainer: Program = {
      kind: "function",
      run: async run => {
        const end = await runProgram(process, run);
        return end.exitCode === 0 ? end : (ended ?? end);
      },
    };
    const shared = { prepared: () => Promise.reject(new Error("no episode is played here")) };
    const executors = executorsHere({
      ...{
        assembly,
        store: await temporaryStore(),
        shared,
        trainer,
        driver: trainer,
        environment: {},
        episodesPerDriver: 1,
      },
    });
    await submit(executors, { JobQueue: "t1-train-spot", JobDefinition: "t1-train" });
    return readFileSync(seen, "utf8").trim().split("\n");
  }

  it("is tried four times when its host was lost, by the synthesized definition", async () => {
    const lost = { statusReason: "Host EC2 (instance i-0123) terminated." };
    expect(await train(lost, "kill -KILL $$")).toEqual(["1", "2", "3", "4"]);
  });

  it("is not tried again for what it did itself", async () => {
    expect(await train(undefined, "exit 70")).toEqual(["1"]);
    rmSync(join(folder, "seen"));
    expect(await train(undefined, "kill -KILL $$")).toEqual(["1"]);
  });
});
