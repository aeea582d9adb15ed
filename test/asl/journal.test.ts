// Runners that are killed, closed and broken off.
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TaskExecutor } from "../../src/asl/executor.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { openRunner, type RunnerOptions } from "../../src/asl/runner.ts";
import { StateError } from "../../src/asl/state-error.ts";
import { killAndResume } from "./kill-and-resume.ts";
import { call, executor, machineOf } from "./run-machine.ts";
import { VirtualClock } from "./virtual-clock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-journal-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a killed runner", () => {
  it("goes on where it stood, and works out no recorded result again", { timeout: 120_000 }, () =>
    killAndResume(folder, [3]),
  );
});

const ok: TaskExecutor = async ({ arguments: { name = null } }) => name;

function options(definition: Json, rest: Partial<RunnerOptions> = {}): RunnerOptions {
  return {
    folder,
    seed: "journal",
    clock: new VirtualClock(),
    machines: { main: definition },
    executors: executor(ok),
    ...rest,
  };
}

describe("a journal", () => {
  it("lets a wait go on until the time it was to end, not from its start", async () => {
    const definition = machineOf({
      Wait: { Type: "Wait", Seconds: 100, Next: "Hang" },
      Hang: call({ TimeoutSeconds: 1000 }),
    });
    const clock = new VirtualClock();
    const first = await openRunner(
      options(definition, { clock, executors: executor(async (_, { idle }) => idle(new Promise(() => {}))) }),
    );
    const { executionArn } = first.startExecution({ machine: "main", name: "run" });
    await new Promise(resolve => clock.at(clock.now() + 40_000, () => resolve(undefined)));
    await first.close();
    const second = await openRunner(options(definition, { clock }));
    expect((await second.result(executionArn)).status).toBe("SUCCEEDED");
    const entered = second.history(executionArn).find(({ type }) => type === "WaitStateEntered");
    const exited = second.history(executionArn).find(({ type }) => type === "WaitStateExited");
    expect(Date.parse(exited?.timestamp ?? "") - Date.parse(entered?.timestamp ?? "")).toBe(100_000);
    await second.close();
  });

  it("keeps nested executions open when the runner closes, and both go on", async () => {
    const parent = machineOf({
      Nested: call({
        Resource: "arn:aws:states:::states:startExecution.sync:2",
        Arguments: { StateMachineArn: "arn:aws:states:us-east-1:000000000000:stateMachine:child", Name: "c" },
        Output: "{% $states.result.Output %}",
      }),
    });
    const machines = { main: parent, child: machineOf({ Work: call({ Arguments: { name: "done" } }) }) };
    const started = Promise.withResolvers<void>();
    const hanging = executor((_, { signal }) => {
      started.resolve();
      return new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(new Error("stopped"))),
      );
    });
    const first = await openRunner(options(parent, { machines, executors: hanging }));
    const { executionArn } = first.startExecution({ machine: "main", name: "run" });
    await started.promise;
    await first.close();
    const second = await openRunner(options(parent, { machines }));
    expect(await second.result(executionArn)).toMatchObject({ status: "SUCCEEDED", output: '"done"' });
    await second.close();
  });

  it("stays when its execution is forgotten, and keeps the name taken", async () => {
    const definition = machineOf({ A: call({ Arguments: { name: "a" } }) });
    const runner = await openRunner(options(definition));
    const { executionArn } = await runner.run({ machine: "main", name: "run" });
    runner.forget(executionArn);
    expect(() => runner.history(executionArn)).toThrow("no such execution");
    expect(() => runner.startExecution({ machine: "main", name: "run" })).toThrow("execution exists already");
    await runner.close();
    const second = await openRunner(options(definition));
    expect(second.describe(executionArn).status).toBe("SUCCEEDED");
    await second.close();
  });

  it("without a whole first line gives its name free", async () => {
    const definition = machineOf({ A: call({ Arguments: { name: "a" } }) });
    writeFileSync(join(folder, "main@run.jsonl"), '{"kind":"exec');
    const runner = await openRunner(options(definition));
    expect((await runner.run({ machine: "main", name: "run" })).status).toBe("SUCCEEDED");
    await runner.close();
  });

  it("keeps retry counts: a restart gives no new tries", async () => {
    const definition = machineOf({
      Task: call({ Retry: [{ ErrorEquals: ["X"], MaxAttempts: 3, IntervalSeconds: 100 }] }),
    });
    const clock = new VirtualClock();
    let tries = 0;
    const failing = executor(async () => {
      tries++;
      throw new StateError("X");
    });
    const first = await openRunner(options(definition, { clock, executors: failing }));
    const { executionArn } = first.startExecution({ machine: "main", name: "run" });
    await new Promise(resolve => clock.at(clock.now() + 150_000, () => resolve(undefined)));
    await first.close();
    expect(tries).toBe(2);
    const second = await openRunner(options(definition, { clock, executors: failing }));
    expect((await second.result(executionArn)).error).toBe("X");
    expect(tries).toBe(4);
    await second.close();
  });

  it("is cut at a half-written last line, and refused with its line number anywhere else", async () => {
    const definition = machineOf({
      A: call({ Arguments: { name: "a" }, Next: "B" }),
      B: call({ Arguments: { name: "b" } }),
    });
    const first = await openRunner(options(definition));
    const { executionArn, output } = await first.run({ machine: "main", name: "run" });
    await first.close();
    const file = join(folder, readdirSync(folder).find(name => name.endsWith(".jsonl")) ?? "");
    const whole = readFileSync(file, "utf8");
    // Every place at which a killed process can have stopped writing.
    for (let length = whole.indexOf("\n") + 1; length <= whole.length; length += 37) {
      writeFileSync(file, whole.slice(0, length));
      const runner = await openRunner(options(definition));
      expect((await runner.result(executionArn)).output).toBe(output);
      await runner.close();
    }
    const lines = whole.split("\n");
    lines[2] = "{torn";
    writeFileSync(file, lines.join("\n"));
    await expect(openRunner(options(definition))).rejects.toThrow(/corrupt journal: .*main@run\.jsonl:3/);
    await expect(openRunner(options(definition))).rejects.toThrow("corrupt journal");
  });

  it("goes on with the definition that the execution was started with", async () => {
    const definition = machineOf({
      Wait: { Type: "Wait", Seconds: 100, Next: "A" },
      A: call({ Arguments: { name: "old" } }),
    });
    const first = await openRunner(options(definition));
    const { executionArn } = first.startExecution({ machine: "main", name: "run" });
    await new Promise(resolve => setTimeout(resolve, 0));
    await first.close();
    const second = await openRunner(options(machineOf({ B: call({ Arguments: { name: "new" } }) })));
    expect((await second.result(executionArn)).output).toBe('"old"');
    await second.close();
  });

  it("belongs to one runner at a time", async () => {
    const first = await openRunner(options(machineOf({ A: call() })));
    await expect(openRunner(options(machineOf({ A: call() })))).rejects.toThrow("locked for too long");
    await first.close();
    await (await openRunner(options(machineOf({ A: call() })))).close();
  });

  it("that cannot be written breaks the execution off, and does not end it", async () => {
    const definition = machineOf({ A: call({ Arguments: { name: "a" } }) });
    const runner = await openRunner(
      options(definition, { executors: executor(async () => Promise.reject(new TypeError("a bug"))) }),
    );
    const { executionArn } = runner.startExecution({ machine: "main", name: "run" });
    await expect(runner.result(executionArn)).rejects.toThrow("a bug");
    await runner.close();
    const again = await openRunner(options(definition));
    expect((await again.result(executionArn)).output).toBe('"a"');
    await again.close();
  });
});

describe("B41 a run that is resumed", () => {
  it("starts at the iteration at which it was killed (metaflow#480)", async () => {
    const definition = machineOf({
      Count: { Type: "Pass", Assign: { iteration: 1 }, Next: "Iterate" },
      Iterate: call({
        Arguments: { name: "{% $iteration %}" },
        Assign: { iteration: "{% $iteration + 1 %}" },
        Next: "More",
      }),
      More: {
        Type: "Choice",
        Choices: [{ Condition: "{% $iteration <= 5 %}", Next: "Iterate" }],
        Default: "Done",
      },
      Done: { Type: "Succeed" },
    });
    const seen: number[] = [];
    const first = await openRunner(
      options(definition, {
        executors: executor(async ({ arguments: { name } }, { idle }) => {
          seen.push(Number(name));
          return name === 3 ? idle(new Promise<never>(() => {})) : Number(name);
        }),
      }),
    );
    const { executionArn } = first.startExecution({ machine: "main", name: "run" });
    await expect.poll(() => seen.length).toBe(3);
    // As if the process were gone: nothing is closed, and the file is read by another.
    const journals = mkdtempSync(join(tmpdir(), "t1-journal-copy-"));
    appendFileSync(join(journals, "main@run.jsonl"), readFileSync(join(folder, "main@run.jsonl")));
    const second = await openRunner(
      options(definition, {
        folder: journals,
        executors: executor(async ({ arguments: { name } }) => seen.push(Number(name))),
      }),
    );
    expect((await second.result(executionArn)).status).toBe("SUCCEEDED");
    expect(seen).toEqual([1, 2, 3, 3, 4, 5]);
    await second.close();
    rmSync(journals, { recursive: true });
    first.stopExecution(executionArn);
  });
});
