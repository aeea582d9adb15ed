// Executors with real processes, and the public cases about launching.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { realClock } from "../../src/asl/clock.ts";
import { batchExecutor, type JobDefinition, type JobQueue } from "../../src/asl/executors/batch.ts";
import { type Container, ecsExecutor } from "../../src/asl/executors/ecs.ts";
import { lambdaExecutor } from "../../src/asl/executors/lambda.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { openRunner } from "../../src/asl/runner.ts";
import { MISSING_RECORDINGS, readRecorded } from "./recorded.ts";
import { detailsOf, machineOf, runMachine } from "./run-machine.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-executors-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const task = (Resource: string, fields: Record<string, Json>) =>
  machineOf({
    Task: {
      Type: "Task",
      Resource: `arn:aws:states:::${Resource}`,
      ...fields,
      ...("Next" in fields ? {} : { End: true }),
    },
  });

const runTask = (
  container: Omit<Container, "name" | "image">,
  fields: Record<string, Json> = {},
  pattern = ".sync",
) =>
  ({
    definition: task(`ecs:runTask${pattern}`, {
      Arguments: {
        TaskDefinition: "driver",
        Cluster: "c",
        ...((fields.Arguments as object | undefined) ?? {}),
      },
      ...withoutArguments(fields),
    }),
    executors: {
      "ecs:runTask": ecsExecutor({
        driver: { containers: [{ name: "main", image: "driver:1", ...container }] },
      }),
    },
  }) as const;
const withoutArguments = ({ Arguments: _, ...rest }: Record<string, Json>) => rest;

const shell = (script: string) => ({ kind: "process" as const, entryPoint: ["/bin/sh", "-c", script] });

describe("ecs:runTask", () => {
  it("gives the container the definition's environment, the override's above it, and nothing of ours", async () => {
    process.env.T1_SECRET_OF_THE_HOST = "x";
    const { definition, executors } = runTask(
      { program: shell(`env > ${folder}/env`), environment: { A: "definition", B: "definition" } },
      {
        Arguments: {
          Overrides: {
            ContainerOverrides: [{ Name: "main", Environment: [{ Name: "B", Value: "override" }] }],
          },
        },
      },
    );
    const { output } = await runMachine(definition, { executors });
    delete process.env.T1_SECRET_OF_THE_HOST;
    expect(output).toMatchObject({
      LastStatus: "STOPPED",
      StopCode: "EssentialContainerExited",
      Containers: [{ ExitCode: 0, Name: "main" }],
    });
    const seen = readFileSync(join(folder, "env"), "utf8");
    expect(seen).toContain("A=definition");
    expect(seen).toContain("B=override");
    expect(seen).not.toContain("T1_SECRET");
  });

  it("B23 fails with the exit code in the cause, and tells a task that never started (floci#1564, airflow#52943)", async () => {
    const exited = runTask({ program: shell("exit 3") });
    const { description } = await runMachine(exited.definition, { executors: exited.executors });
    expect(description.error).toBe("States.TaskFailed");
    expect(JSON.parse(description.cause ?? "")).toMatchObject({
      StopCode: "EssentialContainerExited",
      Containers: [{ ExitCode: 3 }],
    });
    const missing = runTask({ program: undefined });
    const never = await runMachine(missing.definition, { executors: missing.executors });
    expect(never.description.error).toBe("ECS.TaskFailedToStartException");
    expect(JSON.parse(never.description.cause ?? "")).toMatchObject({
      StopCode: "TaskFailedToStart",
      StoppedReason: expect.stringContaining("CannotPullContainerError"),
    });
  });

  it("B25 shows a Spot interruption by its reason, so that a machine can go to on-demand (nextflow#5786, containers-roadmap#1565)", async () => {
    const ends = [{ exitCode: 143, reason: "Your Spot Task was interrupted." }, { exitCode: 0 }];
    const used: string[] = [];
    const executors = {
      "ecs:runTask": ecsExecutor({
        driver: {
          containers: [
            {
              name: "main",
              image: "driver:1",
              program: {
                kind: "function",
                run: async ({ environment }) => {
                  used.push(environment.CAPACITY);
                  return ends.shift() ?? {};
                },
              },
            },
          ],
        },
      }),
    };
    const start = (capacity: string, fields: Record<string, Json>) => ({
      Type: "Task",
      Resource: "arn:aws:states:::ecs:runTask.sync",
      Arguments: {
        TaskDefinition: "driver",
        Overrides: {
          ContainerOverrides: [{ Name: "main", Environment: [{ Name: "CAPACITY", Value: capacity }] }],
        },
      },
      ...fields,
    });
    const { description } = await runMachine(
      machineOf({
        Spot: start("spot", {
          Catch: [
            {
              ErrorEquals: ["States.TaskFailed"],
              Assign: { reason: "{% $parse($states.errorOutput.Cause).StoppedReason %}" },
              Next: "Why",
            },
          ],
          End: true,
        }),
        Why: {
          Type: "Choice",
          Choices: [{ Condition: "{% $contains($reason, 'Spot') %}", Next: "OnDemand" }],
          Default: "Failed",
        },
        OnDemand: start("on-demand", { End: true }),
        Failed: { Type: "Fail" },
      }),
      { executors },
    );
    expect(description.status).toBe("SUCCEEDED");
    expect(used).toEqual(["spot", "on-demand"]);
  });

  it("B26 stops a task that ignores SIGTERM, with all it started (containers-roadmap#291, CloudSnorkel#537)", async () => {
    const started = runTask({
      program: shell(
        `trap '' TERM; sleep 600 & echo $! > ${folder}/child; echo $$ > ${folder}/pid; wait; sleep 600`,
      ),
      stopTimeoutSeconds: 0.2,
    });
    const runner = await openRunner({
      machines: { main: started.definition },
      executors: started.executors,
      clock: realClock,
    });
    const { executionArn } = runner.startExecution({ machine: "main" });
    await expect.poll(() => read("pid"), { timeout: 20_000 }).not.toBe("");
    runner.stopExecution(executionArn);
    expect((await runner.result(executionArn)).status).toBe("ABORTED");
    await runner.close();
    for (const name of ["pid", "child"])
      await expect.poll(() => isAlive(Number(read(name))), { timeout: 10_000 }).toBe(false);
  });

  it("stops it at the state's time-out too", async () => {
    const started = runTask(
      { program: shell(`echo $$ > ${folder}/pid; exec sleep 600`) },
      { TimeoutSeconds: 1 },
    );
    const { description } = await runMachine(started.definition, {
      executors: started.executors,
      clock: realClock,
    });
    expect(description.error).toBe("States.Timeout");
    const pid = read("pid");
    if (pid !== "") await expect.poll(() => isAlive(Number(pid)), { timeout: 10_000 }).toBe(false);
  });

  it("refuses an unknown task definition and an override of no container, before anything runs", async () => {
    const { executors } = runTask({ program: shell("exit 0") });
    const unknown = await runMachine(task("ecs:runTask.sync", { Arguments: { TaskDefinition: "nope" } }), {
      executors,
    });
    expect(unknown.description.error).toBe("ECS.ClientException");
    expect(detailsOf(unknown.events, "TaskSubmitFailed")).toHaveLength(1);
    const other = await runMachine(
      task("ecs:runTask.sync", {
        Arguments: { TaskDefinition: "driver", Overrides: { ContainerOverrides: [{ Name: "other" }] } },
      }),
      { executors },
    );
    expect(other.description.error).toBe("ECS.InvalidParameterException");
  });

  it.skipIf(MISSING_RECORDINGS !== undefined)(
    `describes a task with the fields that AWS has, and no others${MISSING_RECORDINGS ? ` (skipped: ${MISSING_RECORDINGS})` : ""}`,
    async () => {
      const recorded = readRecorded(
        "services/test_ecs_task_service",
        "TestTaskServiceECS::test_run_task_sync",
      )[0];
      const { definition, executors } = runTask({ program: shell("exit 0") });
      const { events } = await runMachine(definition, { executors });
      const ours = JSON.parse(String(detailsOf(events, "TaskSucceeded")[0].output));
      const theirs = (
        recorded.find(({ type }) => type === "TaskSucceeded") as unknown as {
          taskSucceededEventDetails: { output: Record<string, unknown> };
        }
      ).taskSucceededEventDetails.output;
      expect(Object.keys(ours).filter(key => !(key in theirs))).toEqual([]);
      const container = (task: Record<string, unknown>) => (task.Containers as Record<string, unknown>[])[0];
      expect(Object.keys(container(ours)).filter(key => !(key in container(theirs)))).toEqual([]);
      for (const key of [
        "TaskArn",
        "TaskDefinitionArn",
        "StopCode",
        "StoppedReason",
        "Containers",
        "LastStatus",
        "LaunchType",
        "Overrides",
      ])
        expect(ours).toHaveProperty(key);
    },
  );
});

describe("batch:submitJob", () => {
  const job = (definition: JobDefinition, fields: Record<string, Json> = {}, queue: JobQueue = {}) =>
    runMachine(
      task("batch:submitJob.sync", {
        Arguments: {
          JobName: "train",
          JobQueue: "gpu",
          JobDefinition: "trainer",
          ...((fields.Arguments as object | undefined) ?? {}),
        },
        ...withoutArguments(fields),
      }),
      {
        executors: {
          "batch:submitJob": batchExecutor({ definitions: { trainer: definition }, queues: { gpu: queue } }),
        },
      },
    );

  it("starts every node, tells the main one's address to the others only, and ends with the main one", async () => {
    const seen: Record<string, string | undefined>[] = [];
    const { output } = await job(
      {
        nodeCount: 2,
        program: {
          kind: "function",
          run: async ({ environment, signal }) => {
            const {
              AWS_BATCH_JOB_NODE_INDEX: node,
              AWS_BATCH_JOB_NUM_NODES: count,
              AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS: address,
              ROLE: role,
            } = environment;
            seen.push({ node, count, address, role });
            if (node !== "0") await new Promise(resolve => signal.addEventListener("abort", resolve));
            return { exitCode: node === "0" ? 0 : 143 };
          },
        },
      },
      {
        Arguments: {
          NodeOverrides: {
            NumNodes: 3,
            NodePropertyOverrides: [
              { TargetNodes: "1:", ContainerOverrides: { Environment: [{ Name: "ROLE", Value: "worker" }] } },
            ],
          },
        },
      },
    );
    expect(output).toMatchObject({ Status: "SUCCEEDED", JobName: "train" });
    expect(seen).toEqual([
      { node: "0", count: "3", address: undefined, role: undefined },
      { node: "1", count: "3", address: "127.0.0.1", role: "worker" },
      { node: "2", count: "3", address: "127.0.0.1", role: "worker" },
    ]);
  });

  it("B28 cancels a job that stays RUNNABLE at the queue's limit, and a fallback can follow (airflow#38298, metaflow#110)", async () => {
    const program = { kind: "function" as const, run: async () => ({ exitCode: 0 }) };
    const submit = (queue: string, fields: Record<string, Json>) => ({
      Type: "Task",
      Resource: "arn:aws:states:::batch:submitJob.sync",
      Arguments: { JobName: "train", JobQueue: queue, JobDefinition: "trainer" },
      ...fields,
    });
    const { description, tookMs, output } = await runMachine(
      machineOf({
        Reserved: submit("full", {
          Catch: [{ ErrorEquals: ["States.TaskFailed"], Next: "Fallback" }],
          End: true,
        }),
        Fallback: submit("open", { Output: "{% $states.result.JobQueue %}", End: true }),
      }),
      {
        executors: {
          "batch:submitJob": batchExecutor({
            definitions: { trainer: { program } },
            queues: { full: { hasCapacity: false, runnableLimitSeconds: 1800 }, open: {} },
          }),
        },
      },
    );
    expect(description.status).toBe("SUCCEEDED");
    expect(output).toBe("open");
    expect(tookMs).toBe(1_800_000);
  });
});

describe("lambda:invoke", () => {
  const invoke = (
    handler: Parameters<typeof lambdaExecutor>[0][string]["handler"],
    fields: Record<string, Json> = {},
    timeoutSeconds = 3,
  ) =>
    runMachine(
      task("lambda:invoke", { Arguments: { FunctionName: "score", Payload: { x: 1 } }, ...fields }),
      { executors: { "lambda:invoke": lambdaExecutor({ score: { handler, timeoutSeconds } }) } },
    );

  it("answers with the payload in the response, and passes everything through JSON", async () => {
    const { output } = await invoke(async event => ({ got: event, when: new Date(0), none: undefined }));
    expect(output).toMatchObject({
      ExecutedVersion: "$LATEST",
      StatusCode: 200,
      Payload: { got: { x: 1 }, when: "1970-01-01T00:00:00.000Z" },
    });
  });

  it("fails with the error's own name, which a machine can catch", async () => {
    class SandboxLost extends Error {
      override readonly name = "SandboxLost";
    }
    const { description } = await invoke(async () => Promise.reject(new SandboxLost("gone")));
    expect(description.error).toBe("SandboxLost");
    expect(JSON.parse(description.cause ?? "")).toMatchObject({
      errorType: "SandboxLost",
      errorMessage: "gone",
    });
  });

  it("ends a handler at its time-out", async () => {
    const { description } = await invoke(() => new Promise(() => {}), {}, 0.05);
    expect(description).toMatchObject({
      error: "Sandbox.Timedout",
      cause: expect.stringContaining("Task timed out after 0.05 seconds"),
    });
  });

  it("knows no function that is not there", async () => {
    const { description } = await runMachine(
      task("lambda:invoke", { Arguments: { FunctionName: "toString" } }),
      { executors: { "lambda:invoke": lambdaExecutor({}) } },
    );
    expect(description.error).toBe("Lambda.ResourceNotFoundException");
  });
});

describe("a key with the number of the try", () => {
  it("B31 changes from try to try (nextflow PR#5215)", async () => {
    const keys: Json[] = [];
    const { description } = await runMachine(
      task("test:put", {
        Arguments: { Key: "{% 'attempt-' & $string($states.context.State.RetryCount + 1) & '/result' %}" },
        Retry: [{ ErrorEquals: ["S3.S3Exception"] }],
      }),
      {
        executors: { "test:put": async ({ arguments: { Key: key = null } }) => keys.push(key) },
        faults: [{ kind: "error", state: "Task", attempts: [1], error: "S3.S3Exception" }],
      },
    );
    expect(description.status).toBe("SUCCEEDED");
    expect(keys).toEqual(["attempt-2/result"]);
  });
});

function read(name: string): string {
  try {
    return readFileSync(join(folder, name), "utf8").trim();
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}
