// What ECS does instead of starting a sandbox, and what becomes of it. Row numbers (B20 …) and threads are those of the
// list of faults that real projects had.
import { describe, expect, it } from "vitest";
import { capturedText } from "../../../src/sandbox/captured-text.ts";
import { TAG } from "../../../src/sandbox/fargate/task-request.ts";
import type { Lease, Sandbox, SandboxSpec } from "../../../src/sandbox/sandbox.ts";
import type { EcsFake } from "./ecs-fake.ts";
import { openFargatePerTest } from "./fargate-for-tests.ts";
import { FAILURES, REFUSALS, type RequestFault, STOPS } from "./faults.ts";

const open = openFargatePerTest();

const SPEC: SandboxSpec = {
  image: { kind: "docker", reference: "x", files: [] },
  ...{ workdir: "/app", env: {}, network: "none", diskBytes: 32 << 20 },
};

function lease(generation = 1, lifeMs = 120_000): Lease {
  return { id: "runs.r.iterations.000000.17", generation, deadlineMs: Date.now() + lifeMs };
}

async function works(sandbox: Sandbox): Promise<void> {
  const { stdout } = await sandbox.exec("echo works", { timeoutMs: 20_000 });
  expect(capturedText(stdout)).toBe("works\n");
}

function saidBy(fault: RequestFault): string | RegExp {
  if (fault.kind === "error") return fault.type;
  if (fault.kind === "failures") return fault.failures[0]?.reason ?? "started no task";
  return /ECONNRESET|socket hang up|TimeoutError/;
}

/** Short enough to be waited for. */
const IMPATIENT = { timing: { retryForMs: 300 } };

describe("a request that is refused and may pass", () => {
  it.each([
    [
      "B20: a throttled look-up of subnets, hidden in InvalidParameterException",
      REFUSALS["throttled look-up"],
    ],
    ["B20: a throttled look-up of groups", REFUSALS["throttled look-up of groups"]],
    ["throttling", REFUSALS.throttled],
    ["a failure of ECS", REFUSALS["server error"]],
    ["a service that is not there", REFUSALS.unavailable],
    ["an account that runs as many as it may", REFUSALS["vCPU limit"]],
    ["a limit exceeded", REFUSALS["limit exceeded"]],
    ["a connection that is cut", { kind: "cut-before" }],
    ["B22: neither tasks nor failures", FAILURES.nothing],
    ["B22: failures for want of a resource", FAILURES.resource],
  ] as const)("%s: is repeated, then named SandboxUnavailable with the reason", async (_, fault) => {
    const { ecs, provider } = await open({ ...IMPATIENT, market: "on-demand" });
    ecs.failRequests("RunTask", fault, 1_000);
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({
      ...{ name: "SandboxUnavailable", retryable: true },
      message: expect.stringMatching(saidBy(fault)),
    });
    expect(ecs.calls.filter(call => call === "RunTask").length).toBeGreaterThan(2);
    expect(ecs.livingArns).toEqual([]);
  });

  it("goes on once it passes, whatever came in between", async () => {
    const { ecs, provider } = await open();
    for (const fault of [REFUSALS.throttled, REFUSALS["throttled look-up"], REFUSALS.unavailable])
      ecs.failRequests("RunTask", fault);
    ecs.failRequests("DescribeTasks", REFUSALS.throttled, 2);
    ecs.failRequests("DescribeTasks", { kind: "cut-before" });
    await works(await provider.create(SPEC, lease()));
    expect(ecs.arns).toHaveLength(1);
  });
});

describe("a request that a person has to change", () => {
  it.each([
    ["B20: an invalid parameter that is not throttling", REFUSALS["invalid parameter"]],
    ["a definition that is inactive", REFUSALS["inactive definition"]],
    ["a cluster that is not there", REFUSALS["missing cluster"]],
    ["a role that may not run tasks", REFUSALS["access denied"]],
    ["a role that may not pass the execution role", REFUSALS["pass role denied"]],
    ["an account that is blocked", REFUSALS["blocked account"]],
    ["a platform that does not exist", REFUSALS["unknown platform"]],
    ["B22: a failure that names what is missing", FAILURES.missing],
  ] as const)("%s: fails at once, as bad input that no machine retries", async (_, fault) => {
    const { ecs, provider } = await open();
    ecs.failRequests("RunTask", fault, 1_000);
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(saidBy(fault)),
    });
    expect(ecs.calls).toEqual(["RunTask"]);
  });

  it("a network, a folder as image or a size that Fargate does not have is refused before anything is asked", async () => {
    const { ecs, provider } = await open();
    const wrong: Partial<SandboxSpec>[] = [
      { network: "public" },
      { network: "host" },
      { image: { kind: "root", folder: "/roots/x", files: [] } },
      { cpus: 17 },
      { memoryBytes: 200 * 2 ** 30 },
      { diskBytes: 300 * 2 ** 30 },
    ];
    for (const change of wrong)
      await expect(provider.create({ ...SPEC, ...change }, lease())).rejects.toMatchObject({
        name: "InputError",
      });
    expect(ecs.calls).toEqual([]);
  });
});

describe("an answer that never came (marimohub#309: RunTask without a token)", () => {
  it.each([
    ["a cut connection", { kind: "cut-after" }],
    ["silence", { kind: "silent-after" }],
    ["a server error", { kind: "error-after", status: 500, type: "ServerException", message: "" }],
    [
      "throttling",
      { kind: "error-after", status: 400, type: "ThrottlingException", message: "Rate exceeded" },
    ],
  ] as const)("%s after the task was made leads to that task, not to a second one", async (_, fault) => {
    const fargate = await open();
    const { ecs } = fargate;
    const provider = fargate.another({ client: ecs.client({ requestTimeout: 300 }) });
    ecs.failRequests("RunTask", fault);
    await works(await provider.create(SPEC, lease()));
    expect(ecs.arns).toHaveLength(1);
    expect(ecs.calls.filter(call => call === "RunTask").length).toBeGreaterThanOrEqual(2);
  });

  it("and no patience left: what may have started is looked for and stopped", async () => {
    const fargate = await open();
    const { ecs } = fargate;
    const provider = fargate.another({ ...IMPATIENT, client: ecs.client({ requestTimeout: 200 }) });
    ecs.failRequests("RunTask", { kind: "silent-after" }, 100);
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({ name: "SandboxUnavailable" });
    await expect.poll(() => ecs.livingArns, { timeout: 20_000 }).toEqual([]);
    expect(ecs.arns).toHaveLength(1);
  });

  it("and then no room on Spot: what was started is stopped when another is started on demand", async () => {
    const { ecs, provider } = await open();
    ecs.failRequests("RunTask", { kind: "cut-after" });
    ecs.failRequests("RunTask", REFUSALS["capacity exception"]);
    await works(await provider.create(SPEC, lease()));
    expect(ecs.arns).toHaveLength(2);
    await expect.poll(() => ecs.livingArns, { timeout: 20_000 }).toEqual(ecs.arns.slice(1));
  });

  it("a generation is a task of its own, and what was stopped is not used again", async () => {
    const { ecs, provider } = await open();
    const first = await provider.create(SPEC, lease());
    await first[Symbol.asyncDispose]();
    await works(await provider.create(SPEC, lease(2)));
    await works(await provider.create(SPEC, lease()));
    const tokens = ecs.requests.map(({ clientToken }) => clientToken);
    expect(new Set(tokens).size).toBe(3);
    expect(tokens.every(token => (token ?? "").length <= 64)).toBe(true);
  });
});

describe("a task that does not start", () => {
  it.each([
    ["B25: Spot took its machine back before it ran", STOPS["Spot before the start"], "FARGATE"],
    ["no capacity on Spot", STOPS["no capacity"], "FARGATE"],
    ["a pull that timed out", STOPS["pull timed out"], "FARGATE_SPOT"],
    ["a registry that could not be asked", STOPS["resources not initialised"], "FARGATE_SPOT"],
    ["a host that is unwell", STOPS["host lost"], "FARGATE_SPOT"],
    ["a container that was killed from outside", STOPS["killed from outside"], "FARGATE_SPOT"],
  ] as const)("%s: is started once more, where it may succeed", async (_, fault, market) => {
    const { ecs, provider } = await open();
    ecs.failStarts(fault);
    await works(await provider.create(SPEC, lease()));
    const markets = ecs.requests.map(
      ({ capacityProviderStrategy }) => capacityProviderStrategy?.[0]?.capacityProvider,
    );
    expect(markets).toEqual(["FARGATE_SPOT", market]);
    expect(ecs.requests.every(request => request.launchType === undefined)).toBe(true); // B11
  });

  it("RunTask's own word that Spot has no room leads to on demand", async () => {
    const { ecs, provider } = await open();
    ecs.failRequests("RunTask", FAILURES.capacity);
    await works(await provider.create(SPEC, lease()));
    expect(ecs.requests[0]?.capacityProviderStrategy?.[0]?.capacityProvider).toBe("FARGATE");
  });

  it("again and again: is named SandboxUnavailable with what ECS said", async () => {
    const { ecs, provider } = await open(IMPATIENT);
    ecs.failStarts(STOPS["no capacity"], 1_000);
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({
      ...{ name: "SandboxUnavailable", retryable: true },
      message: expect.stringContaining("TaskFailedToStart; Capacity is unavailable"),
    });
    expect(ecs.livingArns).toEqual([]);
  });

  it.each([
    ["B23: an image that is not there", STOPS["image missing"], "not found"],
    ["an image that may not be pulled", STOPS["pull forbidden"], "403 Forbidden"],
    ["an image for another machine", STOPS["wrong machine"], "exec format error"],
  ] as const)("%s: is bad input, at once", async (_, fault, said) => {
    const { ecs, provider } = await open();
    ecs.failStarts(fault, 1_000);
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining(said),
    });
    expect(ecs.arns).toHaveLength(1);
  });

  it("B23: a daemon that exits is a failure to start with its exit code, not a sandbox", async () => {
    const { ecs, provider } = await open();
    ecs.failStarts({
      ...{
        kind: "stops",
        stopCode: "EssentialContainerExited",
        stoppedReason: "Essential container in task exited",
      },
      containers: [{ name: "agent", exitCode: 127, reason: "not to be run" }],
    });
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({
      ...{ name: "SandboxUnavailable", retryable: false },
      message: expect.stringContaining("agent exit code 127 not to be run"),
    });
  });

  it("stays pending: is stopped and given up when its time is over", async () => {
    const { ecs, provider } = await open(IMPATIENT);
    ecs.failStarts({ kind: "never" });
    await expect(provider.create(SPEC, lease())).rejects.toMatchObject({
      name: "SandboxUnavailable",
      message: expect.stringContaining("did not start in time"),
    });
    await expect.poll(() => ecs.livingArns, { timeout: 20_000 }).toEqual([]);
  });

  it.each([
    ["a task that stays pending", (ecs: EcsFake) => ecs.failStarts({ kind: "never" })],
    ["ECS to take its request", (ecs: EcsFake) => ecs.failRequests("RunTask", REFUSALS.throttled, 1_000)],
  ])(
    "while it waits for %s: is given up at once when its driver ends, and leaves nothing",
    async (_, prepare) => {
      const { ecs, provider } = await open();
      prepare(ecs);
      const made = provider.create(SPEC, lease());
      const given = expect(made).rejects.toMatchObject({ name: "SandboxLost", retryable: true });
      await expect.poll(() => ecs.calls.length, { timeout: 20_000 }).toBeGreaterThan(2);
      const startedAt = performance.now();
      await provider[Symbol.asyncDispose]();
      await given;
      expect(performance.now() - startedAt).toBeLessThan(10_000); // its patience is 30 s
      await expect.poll(() => ecs.livingArns, { timeout: 20_000 }).toEqual([]);
    },
  );

  it("is not known to ECS right after RunTask: is waited for, since reads follow writes late", async () => {
    const { ecs, provider } = await open();
    ecs.failStarts({ kind: "hidden", descriptions: 4 });
    await works(await provider.create(SPEC, lease()));
    expect(ecs.arns).toHaveLength(1);
  });

  it("is never known to ECS: another one takes its place, and it is stopped", async () => {
    const { ecs, provider } = await open({ timing: { unknownAfterMs: 200 } });
    ecs.failStarts({ kind: "hidden", descriptions: 1_000_000 });
    await works(await provider.create(SPEC, lease()));
    const [first = ""] = ecs.arns;
    expect(ecs.arns).toHaveLength(2);
    expect(ecs.statusOf(first).desiredStatus).toBe("STOPPED");
  });

  it("a lease without time left makes no sandbox, and not one that lives for ever (harbor#2262)", async () => {
    const { ecs, provider } = await open();
    await expect(provider.create(SPEC, lease(1, 0))).rejects.toMatchObject({ name: "SandboxLost" });
    expect(ecs.calls).toEqual([]);
  });
});

it("a sandbox whose task may use the network has the group that reaches the proxy, and no other one has", async () => {
  const { ecs, provider } = await open({ networkedGroups: ["sg-proxy"] });
  await provider.create({ ...SPEC, network: "public" }, lease());
  await provider.create(SPEC, lease(2));
  const groups = ecs.requests.map(
    request => request.networkConfiguration?.awsvpcConfiguration?.securityGroups,
  );
  expect(groups).toEqual([["sg-1", "sg-proxy"], ["sg-1"]]);
  await expect(provider.create({ ...SPEC, network: "host" }, lease(3))).rejects.toMatchObject({
    name: "InputError",
  });
});

it("a task says whose it is, until when, and where it is, and is given no role and no address of the internet", async () => {
  const driver = "arn:aws:ecs:eu-west-1:000000000000:task/t1/driver";
  const { ecs, provider } = await open({ driver, tags: { "t1:run": "r" } });
  const own = lease();
  await provider.create({ ...SPEC, cpus: 3, memoryBytes: 5 * 2 ** 30, diskBytes: 40 * 2 ** 30 }, own);
  const [request] = ecs.requests;
  const tags = Object.fromEntries((request?.tags ?? []).map(({ key, value }) => [key, value]));
  expect(tags).toEqual({
    "t1:run": "r",
    [TAG.lease]: own.id,
    [TAG.generation]: "1",
    [TAG.deadline]: new Date(own.deadlineMs + 600_000).toISOString(),
    [TAG.driver]: driver,
  });
  expect(request?.networkConfiguration?.awsvpcConfiguration).toEqual({
    ...{ subnets: ["subnet-1"], securityGroups: ["sg-1"], assignPublicIp: "DISABLED" },
  });
  expect(request?.overrides).toMatchObject({
    ...{ cpu: "4096", memory: "8192", ephemeralStorage: { sizeInGiB: 48 } },
  });
  expect(request?.overrides).not.toHaveProperty("taskRoleArn");
  const values = request?.overrides?.containerOverrides?.map(({ environment }) => environment?.[0]?.value);
  expect(new Set(values).size).toBe(2); // a daemon does not know the other's token
});
