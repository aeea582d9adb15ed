// Runs of a deployment, from the command line to the objects in the bucket: all nine stacks in an emulator by the plain
// CDK CLI, functions as they are bundled, machines as they are deployed, drivers and trainers as processes with the
// containers' entry points (or in containers), sandboxes by bubblewrap.
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { GetExecutionHistoryCommand, SFNClient } from "@aws-sdk/client-sfn";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { readState } from "../../src/run/run-state.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { type Ended, makeTinyRun, type TinyRun } from "../run/tiny-run.ts";
import { endpoint, environment, kind, missingFor } from "./at-hand.ts";

const missing = missingFor("stacks", "tasks");
const title = `a deployment in ${kind}${missing === undefined ? "" : ` (skipped: ${missing})`}`;
const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const NAME_OF_STACK =
  /^t1-(storage|network|pull-endpoints|images|sandboxes|sampler|training|pipeline|observability)$/;

describe.skipIf(missing !== undefined)(title, { timeout: 300_000 }, () => {
  let tiny: TinyRun;
  let store: ObjectStore;

  const t1 = async (...args: readonly string[]): Promise<Ended> => {
    try {
      const options = { env: environment, maxBuffer: 1 << 26 };
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN, ...args], options);
      return { code: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as Ended;
      return { code, stdout, stderr };
    }
  };
  const onStack = ["--stack", "t1"];
  const watch = (run: string): Promise<Ended> => t1("run", "watch", run, ...onStack, "--every", "0.5");

  beforeAll(async () => {
    tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout:\n  episodes: 4\n" });
    const stacks = new CloudFormationClient({ endpoint });
    const { Stacks: all = [] } = await stacks.send(new DescribeStacksCommand({}));
    expect(
      all.filter(({ StackName = "" }) => NAME_OF_STACK.test(StackName)).map(one => one.StackStatus),
    ).toEqual(Array(9).fill("CREATE_COMPLETE"));
    const outputs = all.find(({ StackName }) => StackName === "t1-pipeline")?.Outputs ?? [];
    const url = outputs.find(({ OutputKey }) => OutputKey === "StoreUrl")?.OutputValue;
    store = await openStore(`${url}?endpoint=${encodeURIComponent(endpoint)}`);
  }, 300_000);
  afterAll(() => {
    if (tiny !== undefined) rmSync(tiny.folder, { recursive: true, force: true });
  });

  it("plays a run from start to done", async () => {
    const started = await t1("run", "start", tiny.config, "--name", "whole", ...onStack, "--json");
    expect(started.code, started.stderr).toBe(0);
    expect(JSON.parse(started.stdout)).toMatchObject({ run: "whole", execution: "whole-s1-g0" });
    const again = await t1("run", "resume", "whole", ...onStack);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("at work already") });

    const watched = await watch("whole");
    expect(watched.code, watched.stderr).toBe(0);
    expect(watched.stdout).toMatch(/^iteration 1\/1 {2}reward /);
    expect(watched.stderr).toContain("/states/home?region=us-east-1#/v2/executions/details/");
    // The state in progress at this moment depends on timing.
    expect(watched.stderr).toMatch(/^iteration 1 {2}[a-z]/m);
    expect(watched.stderr).toMatch(/whole is done; it has cost about \d+\.\d\d \$/);

    expect((await readState(store, "whole")).state).toMatchObject({ rolloutsClosed: 1, policyPublished: 1 });
    const keys = (await Array.fromAsync(store.list("runs/whole/"))).map(({ key }) => key);
    for (const key of ["closed.json", "metrics.json", "audit.json", "usage.json"])
      expect(keys).toContain(`runs/whole/iterations/000000/${key}`);
    expect(keys).toContain("runs/whole/policies/000001/manifest.json");
    expect(keys.filter(key => /episodes\/\d{6}\/attempt-000001\/episode\.json$/.test(key))).toHaveLength(4);
    const results = (await Array.fromAsync(store.list("map-results/whole-s1-i000000/"))).map(
      ({ key }) => key,
    );
    expect(results.map(key => key.split("/").at(-1))).toEqual(["SUCCEEDED_0.json", "manifest.json"]);
    expect(await statesOf("iteration", "whole-s1-i000000")).toEqual([
      ...["Init", "Plan", "Prepare", "ImagesReady", "AnythingToRun", "Rollouts"],
      ...["Score", "Close", "Update", "Publish", "EvaluationDue", "Done"],
    ]);
  });

  it("says what it has cost, and what it will", async () => {
    const { stdout } = await t1("cost", "whole", ...onStack, "--json");
    const cost = JSON.parse(stdout);
    expect(cost.phases).toMatchObject([
      { phase: "iteration 1", usage: { episodeCount: 4, groupCount: 2, training: { market: "spot" } } },
    ]);
    expect(cost.actualUsd).toBeCloseTo(cost.phases[0].usd, 12);
    expect(cost.plannedUsd).toBeGreaterThan(0);
    expect(cost.plannedPerEpisodeUsd * 4).toBeCloseTo(cost.plannedPerIterationUsd, 12);
    expect(
      JSON.parse((await t1("cost", "--idle", ...onStack, "--json")).stdout).totalUsd,
    ).toBeLessThanOrEqual(25);
  });

  it("answers preflight, with what would fail and without", async () => {
    expect(await t1("preflight", "whole", ...onStack)).toMatchObject({ code: 0 });
    expect(await t1("preflight", "nothing", ...onStack)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such run"),
    });
  });

  it("shows why an episode's driver failed, and goes on when the cause is gone", async () => {
    const started = await t1("run", "start", tiny.config, "--name", "broken", ...onStack);
    expect(started.code, started.stderr).toBe(0);
    await t1("run", "stop", "broken", ...onStack, "--now");
    // The tasks of its pool are lost.
    const tars = (await Array.fromAsync(store.list("pools/"))).filter(({ key }) => key.endsWith(".tar"));
    expect(tars).toHaveLength(4);
    const kept = await Promise.all(tars.map(async ({ key }) => ({ key, object: await store.get(key) })));
    for (const { key } of kept) await store.delete(key);
    expect((await t1("run", "resume", "broken", ...onStack)).code).toBe(0);
    const failed = await watch("broken");
    expect(failed.code).toBe(75);
    expect(failed.stderr).toContain("broken failed in Rollouts: States.ExceedToleratedFailureThreshold");
    expect(failed.stderr).toMatch(/shard: InputError: .*exit code 2/);
    expect(failed.stderr).toMatch(/\| t1: a task of the pool is missing: pools\/.*\.tar/);
    expect(failed.stderr).toContain("#logsV2:log-groups/log-group/");

    for (const { key, object } of kept) await store.put(key, object?.body ?? "", { ifNoneMatch: "*" });
    const resumed = await t1("run", "resume", "broken", ...onStack, "--budget-usd", "5", "--json");
    expect(JSON.parse(resumed.stdout)).toMatchObject({ execution: "broken-s3-g0" });
    expect(await watch("broken")).toMatchObject({ code: 0 });
  });

  it("stops where it was told to, which is no failure, and goes on", async () => {
    const two = `${tiny.folder}/two.yaml`;
    writeFileSync(two, readFileSync(tiny.config, "utf8").replace("iterations: 1", "iterations: 2"));
    expect((await t1("run", "start", two, "--name", "halted", ...onStack)).code).toBe(0);
    expect(await t1("run", "stop", "halted", ...onStack)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("stops when"),
    });
    const watched = await watch("halted");
    expect(watched, watched.stderr).toMatchObject({ code: 0 });
    expect(watched.stderr).toContain("halted is stopped");
    expect((await t1("run", "list", ...onStack)).stdout).toMatch(
      /halted +ppo +0\/2 +stopped +halted-s1-g0 +SUCCEEDED/,
    );
    expect((await t1("run", "resume", "halted", ...onStack)).code).toBe(0);
    expect(await watch("halted")).toMatchObject({ code: 0 });
    expect((await readState(store, "halted")).state).toMatchObject({ policyPublished: 2 });
  });

  it("refuses what it cannot run before anything is stored", async () => {
    const cut = `${tiny.folder}/cut.yaml`;
    writeFileSync(
      cut,
      readFileSync(tiny.config, "utf8").replace("rollout:", "rollout:\n  stragglers: cut\n  launch: 5"),
    );
    onTestFinished(() => rmSync(cut));
    expect(await t1("run", "start", cut, "--name", "cut", ...onStack)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot cut stragglers"),
    });
    const long = "r".repeat(41);
    expect(await t1("run", "start", tiny.config, "--name", long, ...onStack)).toMatchObject({ code: 2 });
    expect(await t1("run", "watch", "nothing", ...onStack)).toMatchObject({ code: 2 });
    expect(await t1("run", "list", "--stack", "other")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such deployment: other"),
    });
    expect(await t1("run", "list", "--stack", "t1", "--local", "x")).toMatchObject({ code: 2 });
  });

  /** Names of the states that an execution went through, at its top level. */
  async function statesOf(machine: string, name: string): Promise<string[]> {
    const states = new SFNClient({ endpoint });
    const executionArn = `arn:aws:states:us-east-1:000000000000:execution:t1-${machine}:${name}`;
    const { events = [] } = await states.send(new GetExecutionHistoryCommand({ executionArn }));
    return events.flatMap(({ stateEnteredEventDetails }) => stateEnteredEventDetails?.name ?? []);
  }
});
