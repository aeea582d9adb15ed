// How sandboxes on Fargate end, who is told why, and that nothing goes on costing money. Row numbers and threads are
// those of the lists of faults that real projects had.
import { describe, expect, it } from "vitest";
import { capturedText } from "../../../src/sandbox/captured-text.ts";
import { orphanedSandboxes } from "../../../src/sandbox/fargate/orphaned-sandboxes.ts";
import { readStop, stopKey } from "../../../src/sandbox/fargate/stop-records.ts";
import type { Lease, Sandbox, SandboxSpec } from "../../../src/sandbox/sandbox.ts";
import { temporaryStore } from "../../store/temporary-store.ts";
import { type FargateForTests, openFargatePerTest } from "./fargate-for-tests.ts";
import { FAILURES, REFUSALS } from "./faults.ts";

const PATIENCE = { timeout: 30_000 };
const open = openFargatePerTest();

const SPEC: SandboxSpec = {
  image: { kind: "docker", reference: "x", files: [] },
  ...{ workdir: "/app", env: { COLOUR: "red" }, network: "none", diskBytes: 32 << 20 },
};

let count = 0;
function lease(id = `life/${count++}`, generation = 1, lifeMs = 300_000): Lease {
  return { id, generation, deadlineMs: Date.now() + lifeMs };
}

async function output(sandbox: Sandbox, command: string): Promise<string> {
  const { stdout } = await sandbox.exec(command, { timeoutMs: 60_000 });
  return capturedText(stdout);
}

function looksAt({ ecs }: FargateForTests): number {
  return ecs.calls.filter(call => call === "DescribeTasks").length;
}

/** A sandbox, its task, and a command that runs in it while something happens to it. */
async function busy(fargate: FargateForTests) {
  const own = lease();
  const sandbox = await fargate.provider.create(SPEC, own);
  const arn = fargate.ecs.arns.at(-1) ?? "";
  const running = sandbox.exec("sleep 60", { timeoutMs: 120_000 });
  running.catch(() => undefined);
  await output(sandbox, "true");
  return { own, sandbox, arn, running };
}

describe("a sandbox that ends while it is used", () => {
  it("B25: by Spot, without a stopCode, is lost as interrupted, and its next generation is on demand", async () => {
    const fargate = await open();
    const { own, running, arn } = await busy(fargate);
    await fargate.ecs.stop(arn, { stoppedReason: "Your Spot Task was interrupted." });
    await expect(running).rejects.toMatchObject({
      ...{ name: "SandboxLost", retryable: true },
      message: expect.stringContaining("Spot took its machine back: Your Spot Task was interrupted."),
    });
    await fargate.provider.create(SPEC, { ...own, generation: 2 });
    const markets = fargate.ecs.requests.map(
      request => request.capacityProviderStrategy?.[0]?.capacityProvider,
    );
    expect(markets).toEqual(["FARGATE_SPOT", "FARGATE"]);
  });

  it("harbor#1317: out of memory, is the agent's doing, with its exit code and reason, and not tried again", async () => {
    const fargate = await open();
    const { running, sandbox, arn } = await busy(fargate);
    await fargate.ecs.killContainer(arn, "agent", "OutOfMemoryError: Container killed due to memory usage");
    const told = {
      ...{ name: "SandboxBroken", retryable: false },
      message: expect.stringMatching(/agent exit code 137 OutOfMemoryError/),
    };
    await expect(running).rejects.toMatchObject(told);
    await expect(sandbox.exec("true", { timeoutMs: 1_000 })).rejects.toMatchObject(told);
    await expect.poll(() => fargate.ecs.livingArns, PATIENCE).toEqual([]);
  });

  it("killed from outside is lost, as no agent could have done it", async () => {
    const fargate = await open();
    const { running, arn } = await busy(fargate);
    await fargate.ecs.killContainer(arn, "agent");
    await expect(running).rejects.toMatchObject({
      name: "SandboxLost",
      message: expect.stringMatching(/killed from outside: .*agent exit code 137/),
    });
  });

  it("B26: by the sweeper, says so, also while its task has not stopped for good", async () => {
    for (const deprovisionMs of [0, 3_000]) {
      const fargate = await open();
      const { running, arn } = await busy(fargate);
      const end = { stopCode: "UserInitiated", stoppedReason: "t1: too old", deprovisionMs };
      const stopping = fargate.ecs.stop(arn, end);
      await expect(running).rejects.toMatchObject({
        name: "SandboxLost",
        message: expect.stringContaining("t1: too old"),
      });
      await stopping;
    }
  });

  it("NeMo Evaluator#1066: with a task that ECS has forgotten, is told what was recorded of its stop", async () => {
    const store = await temporaryStore();
    const fargate = await open({ findStop: arn => readStop(store, arn) });
    const { running, arn } = await busy(fargate);
    const detail = { taskArn: arn, stopCode: "SpotInterruption", stoppedReason: "gone", startedAt: "t" };
    const record = { class: "interrupted", time: new Date().toISOString(), detail };
    const key = stopKey(new Date(), arn.split("/").at(-1) ?? "");
    await store.put(key, JSON.stringify(record), { ifNoneMatch: "*" });
    await fargate.ecs.lose(arn);
    await expect(running).rejects.toMatchObject({
      name: "SandboxLost",
      message: expect.stringContaining("SpotInterruption; gone"),
    });
  });

  it("with a task that nobody knows any more, is lost", async () => {
    const fargate = await open();
    const { running, arn } = await busy(fargate);
    await fargate.ecs.lose(arn);
    await expect(running).rejects.toMatchObject({
      name: "SandboxLost",
      message: expect.stringContaining("ECS does not know its task any more"),
    });
  });

  it("while ECS is throttled or away, is found out about when it answers again", async () => {
    const fargate = await open();
    const { running, arn } = await busy(fargate);
    fargate.ecs.failRequests("DescribeTasks", REFUSALS.throttled, 3);
    fargate.ecs.failRequests("DescribeTasks", { kind: "cut-before" }, 2);
    fargate.ecs.failRequests("DescribeTasks", FAILURES.nothing, 2);
    await fargate.ecs.stop(arn, { stopCode: "SpotInterruption", stoppedReason: "Spot" });
    await expect(running).rejects.toMatchObject({
      name: "SandboxLost",
      message: expect.stringContaining("Spot"),
    });
  });
});

describe("a connection that is cut while ECS says nothing of the task", () => {
  it("loses neither the sandbox nor what runs in it", async () => {
    const fargate = await open();
    const sandbox = await fargate.provider.create(SPEC, lease());
    const running = output(sandbox, "echo x >> f; sleep 1; echo done");
    await expect.poll(() => output(sandbox, "cat f; true"), PATIENCE).toBe("x\n");
    fargate.ecs.failRequests("DescribeTasks", FAILURES.nothing, 3);
    const [arn = ""] = fargate.ecs.arns;
    const before = looksAt(fargate);
    fargate.ecs.block(arn, true);
    await expect.poll(() => looksAt(fargate), PATIENCE).toBeGreaterThan(before + 2);
    fargate.ecs.block(arn, false);
    expect(await running).toBe("done\n");
    expect(await output(sandbox, "cat f")).toBe("x\n");
  });
});

describe("a sandbox that its driver is done with", () => {
  it("SWE-ReX#278: is stopped, and its processes with it", async () => {
    const fargate = await open();
    const { sandbox, running, arn } = await busy(fargate);
    await sandbox[Symbol.asyncDispose]();
    await expect(running).rejects.toMatchObject({ name: "SandboxLost" });
    expect(fargate.ecs.statusOf(arn).desiredStatus).toBe("STOPPED");
    await expect.poll(() => fargate.ecs.livingArns, PATIENCE).toEqual([]);
    expect(fargate.ecs.statusOf(arn).stoppedReason).toBe("t1: its driver is done with it");
  });

  it("harbor#2166: ends by its daemon where the driver may not stop tasks, and one that is gone is no error", async () => {
    const fargate = await open();
    const { sandbox, arn } = await busy(fargate);
    fargate.ecs.failRequests("StopTask", REFUSALS["access denied"]);
    await sandbox[Symbol.asyncDispose]();
    await expect.poll(() => fargate.ecs.livingArns, PATIENCE).toEqual([]);
    expect(fargate.ecs.statusOf(arn).stopCode).toBe("EssentialContainerExited");
    const other = await fargate.another().create(SPEC, lease());
    await fargate.ecs.lose(fargate.ecs.arns.at(-1) ?? "");
    await other[Symbol.asyncDispose]();
  });

  it("is graded in the container beside it, once; after that in a task of its own", async () => {
    const { ecs, provider } = await open();
    const first = await provider.create(SPEC, lease());
    await output(first, "echo work > f; sleep 60 &");
    const second = await first.successor(lease(), { without: [] });
    if ("refused" in second) throw new Error(second.refused);
    expect(ecs.arns).toHaveLength(1);
    expect(await output(second, "cat f; cat /proc/[0-9]*/comm")).not.toContain("sleep");
    await first[Symbol.asyncDispose]();
    expect(await output(second, "cat f; echo $COLOUR")).toBe("work\nred\n");
    expect(ecs.livingArns).toHaveLength(1);
    const third = await second.successor(lease(), { without: ["/app/f"] });
    if ("refused" in third) throw new Error(third.refused);
    expect(ecs.arns).toHaveLength(2);
    expect(await output(third, "ls -A; true")).toBe("");
    await second[Symbol.asyncDispose]();
    await third[Symbol.asyncDispose]();
    await expect.poll(() => ecs.livingArns, PATIENCE).toEqual([]);
  });

  it("is graded in a task of its own when the container beside it has ended", async () => {
    const { ecs, provider } = await open({ timing: { connection: { lostAfterMs: 5_000 } } });
    const first = await provider.create(SPEC, lease());
    await output(first, "echo work > f");
    await ecs.killContainer(ecs.arns[0] ?? "", "verifier");
    const second = await first.successor(lease(), { without: [] });
    if ("refused" in second) throw new Error(second.refused);
    expect(await output(second, "cat f")).toBe("work\n");
    expect(ecs.arns).toHaveLength(2);
  });
});

describe("a sandbox whose driver is gone", () => {
  it("is taken over by another one as it is, with what ran and what was changed", async () => {
    const fargate = await open();
    const own = lease();
    const sandbox = await fargate.provider.create(SPEC, own);
    await sandbox.exec("echo kept > f; sleep 900 &", { timeoutMs: 60_000, requestId: "turn-1" });
    const other = fargate.another();
    const taken = await other.adopt(own);
    if (taken === undefined) throw new Error("nothing was taken over");
    expect(await output(taken, "cat f; echo $COLOUR; cat /proc/[0-9]*/comm")).toMatch(
      /^kept\nred\n[\s\S]*sleep/,
    );
    const again = { timeoutMs: 60_000, requestId: "turn-1" };
    expect((await taken.exec("echo kept > f; sleep 900 &", again)).end).toEqual({
      kind: "exited",
      exitCode: 0,
    });
    expect(await output(taken, "cat /proc/[0-9]*/comm | grep -c sleep")).toBe("1\n");
    expect((await taken.changedFiles()).map(({ path }) => path)).toEqual(["/app/f"]);
    await taken[Symbol.asyncDispose]();
    expect(await other.adopt(own)).toBeUndefined();
  });

  it("is the same one for a driver that asks for the lease anew, and no second task", async () => {
    const fargate = await open();
    const own = lease();
    await fargate.provider.create(SPEC, own);
    const sandbox = await fargate.another().create(SPEC, own);
    expect(await output(sandbox, "echo works")).toBe("works\n");
    expect(fargate.ecs.arns).toHaveLength(1);
  });

  it("B26: is swept when its deadline has passed or its driver's task has stopped, and no other task is", async () => {
    const fargate = await open();
    const { ecs } = fargate;
    const driver = ecs.addTask("t1-driver:1");
    const sweeper = fargate.another();
    const [late, orphan, alive] = [lease(), lease(), lease()];
    await fargate.another({ driver: "arn:aws:ecs:eu-west-1:000000000000:task/t1/gone" }).create(SPEC, orphan);
    await fargate.another({ driver }).create(SPEC, alive);
    expect(await sweeper.sweep()).toEqual([orphan.id]);
    await expect.poll(() => ecs.livingArns.length, PATIENCE).toBe(2);
    const tags = [
      { key: "t1:lease", value: late.id },
      { key: "t1:deadline", value: "2026-01-01T00:00:00.000Z" },
    ];
    const at = (time: string) =>
      orphanedSandboxes([{ taskArn: "a", tags }, { taskArn: "sampler" }], new Date(time));
    expect(at("2025-12-31T23:59:59Z")).toEqual([]);
    expect(at("2026-01-01T00:00:01Z")).toEqual([{ arn: "a", leaseId: late.id, why: "its deadline passed" }]);
    await ecs.lose(driver);
    expect(await sweeper.sweep()).toEqual([alive.id]);
    await expect.poll(() => ecs.livingArns, PATIENCE).toEqual([]);
  });

  it("ends at its lease's deadline by itself, while nobody drives or sweeps it", async () => {
    const { ecs, provider } = await open();
    // A machine with much to do needs longer than that until a sandbox is there.
    for (let lifeMs = 8_000; ; lifeMs *= 2) {
      const made = await provider.create(SPEC, lease(undefined, 1, lifeMs)).catch(() => undefined);
      if (made !== undefined) break;
    }
    // A driver that died has no timer either.
    const arn = ecs.arns.at(-1) ?? "";
    ecs.failRequests("StopTask", { kind: "cut-before" }, 1_000);
    await expect
      .poll(() => ecs.statusOf(arn).stopCode, { timeout: 120_000 })
      .toBe("EssentialContainerExited");
    ecs.heal();
  });
});

it("a hundred tasks are described by one request, and all that wait by one loop", async () => {
  const { ecs, provider } = await open({ timing: { retryForMs: 1_500 } });
  ecs.failStarts({ kind: "never" }, 250);
  const made = await Promise.allSettled(Array.from({ length: 250 }, () => provider.create(SPEC, lease())));
  expect(made.every(({ status }) => status === "rejected")).toBe(true);
  const looks = ecs.calls.filter(call => call === "DescribeTasks").length;
  expect(looks).toBeLessThan(150); // 250 loops of their own would be thousands
  await expect.poll(() => ecs.livingArns, PATIENCE).toEqual([]);
});
