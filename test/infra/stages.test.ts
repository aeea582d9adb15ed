// The functions as machines call them: on a real run in a folder store, by the payloads of the deployed definitions.
import { rmSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "aws-lambda";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { handler as close } from "../../lambdas/close/handler.ts";
import { handler as nextStep } from "../../lambdas/next-step/handler.ts";
import { handler as plan } from "../../lambdas/plan/handler.ts";
import { handler as prepare } from "../../lambdas/prepare/handler.ts";
import { handler as score } from "../../lambdas/score/handler.ts";
import { parseRunConfig } from "../../src/config/parse-config.ts";
import { Shard, samplingVersion } from "../../src/rollout/shards.ts";
import { describeSoftware } from "../../src/run/run-record.ts";
import { advanceState, readState } from "../../src/run/run-state.ts";
import { startRun } from "../../src/run/start-run.ts";
import { storePool } from "../../src/run/stored-pool.ts";
import { close as closeStage } from "../../src/stages/close.ts";
import { nextStep as nextStepStage } from "../../src/stages/next-step.ts";
import { plan as planStage } from "../../src/stages/plan.ts";
import { preflight } from "../../src/stages/preflight.ts";
import { prepare as prepareStage } from "../../src/stages/prepare.ts";
import { publish } from "../../src/stages/publish.ts";
import { score as scoreStage } from "../../src/stages/score.ts";
import { callStage } from "../../src/stages/stage.ts";
import { summarise } from "../../src/stages/summarise.ts";
import { readJsonLines } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { makeTinyRun, type TinyRun } from "../run/tiny-run.ts";
import { definitionsOf, deployedTemplates, type UncheckedJson } from "./deployed-templates.ts";

const templates = await deployedTemplates();
let tiny: TinyRun;
let store: ObjectStore;

const context = (remainingMs = 60_000) =>
  ({ awsRequestId: "test", getRemainingTimeInMillis: () => remainingMs }) as Context;

/** Calls a function as Lambda does, with the environment that its deployment gives it. */
async function call(handler: UncheckedJson, event: unknown, remainingMs?: number): Promise<UncheckedJson> {
  const answer = await handler(JSON.parse(JSON.stringify(event)), context(remainingMs));
  return answer === undefined ? undefined : JSON.parse(JSON.stringify(answer));
}

/** Calls preflight as a laptop does, where there is no account to ask. */
async function askHere(event: unknown): Promise<UncheckedJson> {
  const { signal } = new AbortController();
  const services = { store, signal, onMetrics: () => {}, onWarning: () => {} };
  return callStage(preflight, event, undefined, services);
}

beforeAll(async () => {
  tiny = await makeTinyRun({ tasks: 6, iterations: 2, settings: "rollout:\n  episodes: 5\n" });
  store = await openStore(tiny.store);
  await storePool({ folder: tiny.pool, name: "tiny" }, { store });
  const text = (await readFile(tiny.config, "utf8")).replace("pool: pool", "pool: store:tiny");
  await startRun(
    {
      run: "r",
      config: parseRunConfig(text, tiny.config),
      configFile: tiny.config,
      software: describeSoftware({}),
      createdAt: new Date(0),
    },
    { store },
  );
  const environments = Object.values(templates.pipeline.Resources)
    .filter(({ Type }) => Type === "AWS::Lambda::Function")
    .map(({ Properties }) => Properties.Environment.Variables);
  Object.assign(process.env, ...environments, {
    T1_STORE_URL: tiny.store,
    T1_EPISODES_PER_DRIVER: "2",
  });
}, 120_000);
afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

describe("payloads of the definitions", () => {
  const schemas: Record<string, z.ZodType> = {
    Plan: planStage.input,
    Prepare: prepareStage.input,
    Score: scoreStage.input,
    Close: closeStage.input,
    Publish: publish.input,
    Summarise: summarise.input,
    Preflight: preflight.input,
    NextStep: nextStepStage.input,
  };
  /** Every call of a function in a definition: its name, and the keys of its payload. */
  function* calls(chart: UncheckedJson): Generator<[stage: string, keys: string[]]> {
    for (const state of Object.values<UncheckedJson>(chart.States)) {
      if (state.Resource?.endsWith("lambda:invoke"))
        yield [
          /<(\w+?)Function/.exec(state.Arguments.FunctionName)?.[1] ?? "",
          Object.keys(state.Arguments.Payload),
        ];
      for (const inner of [state.ItemProcessor, ...(state.Branches ?? [])]) if (inner) yield* calls(inner);
    }
  }

  it("have the keys that the functions expect, no more and no fewer", () => {
    const seen = new Set<string>();
    for (const definition of Object.values(definitionsOf(templates))) {
      for (const [stage, keys] of calls(definition)) {
        seen.add(stage);
        // A value of the wrong type is refused too, but each key by its own name: only keys are looked at here.
        const { error } = schemas[stage].safeParse(Object.fromEntries(keys.map(key => [key, Symbol(key)])));
        const strange = (list: readonly { code?: string }[]) =>
          list.filter(({ code }) => code === "unrecognized_keys").length;
        const issues = error?.issues.flatMap(issue =>
          issue.code === "invalid_union"
            ? issue.errors.toSorted((a, b) => strange(a) - strange(b) || a.length - b.length)[0]
            : [issue],
        );
        const unknown = issues?.filter(({ code }) => code === "unrecognized_keys");
        const missing = issues?.filter(({ path }) => path.length > 0 && !keys.includes(String(path[0])));
        expect([stage, unknown, missing]).toEqual([stage, [], []]);
      }
    }
    expect([...seen].sort()).toEqual(Object.keys(schemas).sort());
  });
});

describe("an iteration whose drivers are lost", () => {
  it("is planned in shards, recorded as failed, not closed, and planned again", async () => {
    expect(await askHere({ run: "r", from: null, overlap: false, execution: "r-s1" })).toEqual({
      algorithm: "ppo",
      iterations: 2,
    });
    expect(await call(nextStep, { run: "r", budgetUsd: null })).toEqual({
      next: "iterate",
      iteration: 0,
      last: false,
      spentUsd: 0,
    });
    const planned = await call(plan, { run: "r", iteration: 0, overlap: false });
    expect(planned).toMatchObject({ shardCount: 3, episodeCount: 5, policyVersion: 0 });
    const shards = await readJsonLines(store, planned.shardsKey, Shard);
    expect(shards.map(({ episodes }) => episodes)).toEqual([[0, 1], [2, 3], [4]]);
    expect(await call(plan, { run: "r", iteration: 0, overlap: false })).toEqual(planned);
    expect(await call(score, { phase: planned.phase })).toEqual({ lostCount: 5 });
    expect(await call(score, { phase: planned.phase })).toEqual({ lostCount: 0 });
    const closing = call(close, { phase: planned.phase, policyVersion: 0, pool: planned.pool });
    await expect(closing).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining("5 failed"),
    });
    expect((await readState(store, "r")).state.rolloutsClosed).toBe(0);
    expect(await call(plan, { run: "r", iteration: 0, overlap: false })).toEqual(planned);
  });

  it("stops when it is told to, and when its budget is spent", async () => {
    const free = { run: "r", budgetUsd: 1 };
    expect(await call(nextStep, free)).toMatchObject({ next: "iterate" });
    const usage = {
      format: "t1-usage-1",
      episodeCount: 5,
      groupCount: 3,
      sandboxSeconds: 100_000,
      driverSeconds: 1000,
      rolloutSeconds: 1000,
    };
    await store.put("runs/r/evaluations/x/usage.json", JSON.stringify(usage), { ifNoneMatch: "*" });
    const spent = await call(nextStep, free);
    expect(spent.next).toBe("budget-spent");
    expect(spent.spentUsd).toBeGreaterThan(1);
    expect(await call(nextStep, { run: "r", budgetUsd: 1000 })).toMatchObject({ next: "iterate" });
    await advanceState(store, "r", await readState(store, "r"), { kind: "stop", reason: "test" });
    expect(await call(nextStep, { run: "r", budgetUsd: null })).toMatchObject({ next: "stopped" });
    await advanceState(store, "r", await readState(store, "r"), { kind: "resume" });
  });

  it("is asked for what would fail, and changes nothing", async () => {
    expect(await askHere({ ask: true })).toEqual({ problems: [], warnings: [] });
    expect(await askHere({ ask: true, run: "r" })).toEqual({ problems: [], warnings: [] });
    await expect(askHere({ ask: true, run: "none" })).rejects.toMatchObject({ name: "InputError" });
    await expect(askHere({ ask: false })).rejects.toMatchObject({ name: "InputError" });
  });

  it("keeps the overlap it was first started with", async () => {
    const other = askHere({ run: "r", from: null, overlap: true, execution: "r-s2" });
    await expect(other).rejects.toMatchObject({ name: "InputError" });
    expect([samplingVersion(0, true), samplingVersion(1, true), samplingVersion(7, true)]).toEqual([0, 0, 6]);
    expect(samplingVersion(7, false)).toBe(7);
  });

  it("can be made anew from a checkpoint, once", async () => {
    const event = { run: "fork", from: { run: "r", version: 0 }, overlap: false, execution: "fork-s1" };
    expect(await askHere(event)).toMatchObject({ algorithm: "ppo" });
    expect(await askHere(event)).toMatchObject({ algorithm: "ppo" });
    expect((await readState(store, "fork")).state).toMatchObject({ rolloutsClosed: 0, policyPublished: 0 });
    const copied = await store.get("runs/fork/policies/000000/model.safetensors");
    expect(copied?.body).toEqual((await store.get("runs/r/policies/000000/model.safetensors"))?.body);
  });
});

describe("every function", () => {
  it("refuses unknown keys by the name that machines match on", async () => {
    const answer = call(score, { phase: "runs/r/iterations/000000/", retries: 3 });
    await expect(answer).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining("retries"),
    });
  });

  it("refuses a key that is no phase", async () => {
    await expect(call(score, { phase: "runs/../etc" })).rejects.toMatchObject({ name: "InputError" });
  });

  it("B52: leaves no folder behind when it is not done in time", async () => {
    const temporary = await mkdtemp(join(tmpdir(), "t1-lambda-"));
    const before = process.env.TMPDIR ?? tmpdir();
    process.env.TMPDIR = temporary;
    try {
      const answer = call(prepare, { phase: "runs/r/iterations/000000/" }, 10_001);
      await expect(answer).rejects.toMatchObject({ name: "StageTimedOut" });
      expect(await readdir(temporary)).toEqual([]);
    } finally {
      process.env.TMPDIR = before;
      await rm(temporary, { recursive: true });
    }
  });

  it("ends before Lambda would end it", async () => {
    // Ten seconds are left for the answer; of the 10,001 ms that remain, the stage has one.
    const answer = call(score, { phase: "runs/r/iterations/000000/" }, 10_001);
    await expect(answer).rejects.toMatchObject({ name: "StageTimedOut" });
  });
});
