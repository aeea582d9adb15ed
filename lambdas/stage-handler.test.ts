// A function answers in time, whether its stage is done or not.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Context } from "aws-lambda";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { environment } from "../src/settings/environment.ts";
import { type StageServices, stage } from "../src/stages/stage.ts";
import { stageHandler } from "./stage-handler.ts";

/** A stage ends this much earlier than Lambda, so the answer can travel. */
const EARLY_MS = 10_000;

const context = (leftMs: number) =>
  ({ awsRequestId: "test", getRemainingTimeInMillis: () => EARLY_MS + leftMs }) as Context;

/** A function whose stage does the work. */
const handlerOf = (work: (signal: AbortSignal) => Promise<unknown>) =>
  stageHandler(
    stage({
      input: z.object({}),
      output: z.unknown(),
      settings: environment("a test", {}),
      run: (_, __: unknown, { signal }: StageServices) => work(signal),
    }),
  );

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "t1-stage-"));
  process.env.T1_STORE_URL = folder;
  return () => rm(folder, { recursive: true, force: true });
});

it("B52: what a stage cleans up is clean before it answers that it was not done in time", async () => {
  const parent = await mkdtemp(join(tmpdir(), "t1-stage-"));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  let isClean = false;
  const handler = handlerOf(async signal => {
    const work = await mkdtemp(join(parent, "work-"));
    try {
      await sleep(60_000, undefined, { signal });
    } finally {
      await sleep(300); // removing thousands of files takes a while
      await rm(work, { recursive: true });
      isClean = true;
    }
  });
  await expect(handler({}, context(50))).rejects.toMatchObject({ name: "StageTimedOut", retryable: true });
  expect([isClean, await readdir(parent)]).toEqual([true, []]);
});

it("B52: work that does not heed its end is not waited for until Lambda ends the function", async () => {
  const handler = handlerOf(() => sleep(30_000, undefined, { ref: false }));
  const begun = performance.now();
  await expect(handler({}, context(20))).rejects.toMatchObject({ name: "StageTimedOut" });
  expect(performance.now() - begun).toBeLessThan(EARLY_MS);
}, 20_000);

it("B52: work that fails while it is being ended does not replace the time-out, nor is its error left over", async () => {
  const unhandled: unknown[] = [];
  const keep = (error: unknown) => unhandled.push(error);
  process.on("unhandledRejection", keep);
  onTestFinished(() => void process.off("unhandledRejection", keep));
  const handler = handlerOf(async signal => {
    await sleep(60_000, undefined, { signal }).catch(() => {});
    throw new Error("half done");
  });
  await expect(handler({}, context(20))).rejects.toMatchObject({ name: "StageTimedOut" });
  await sleep(50);
  expect(unhandled).toEqual([]);
});

it("B53: after a stage that was done in time no timer is left: the process ends, without a late error", async () => {
  const program = `
    import { z } from "zod";
    import { stageHandler } from ${JSON.stringify(join(import.meta.dirname, "stage-handler.ts"))};
    import { environment } from ${JSON.stringify(join(import.meta.dirname, "../src/settings/environment.ts"))};
    const handlerOf = run =>
      stageHandler({ input: z.object({}), output: z.string(), settings: environment("a test", {}), run });
    const context = { awsRequestId: "test", getRemainingTimeInMillis: () => 60_000 };
    process.on("unhandledRejection", () => process.exit(3));
    console.log(await handlerOf(async () => "done")({}, context));
    await handlerOf(async () => { throw new Error("broken") })({}, context).catch(() => {});
    // This lists leftover timers; only those that hold the process open count.
    console.log(process.getActiveResourcesInfo().filter(name => name === "Timeout").length);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: join(import.meta.dirname, ".."),
    env: { ...process.env, T1_STORE_URL: folder },
    timeout: 40_000,
  });
  expect(stdout.split("\n").filter(line => !line.startsWith("{"))).toEqual(["done", "0", ""]);
});
