// A small storm, at every `npm test`; the large one is test/long/storm.test.ts.
import { rmSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { checkStormyIteration, checkTrainedOnAdmittedOnly } from "../storm/check-storm.ts";
import { RUN, runStorm } from "../storm/storm.ts";

const EPISODES = 60;

it("an iteration in which everything fails that can, the runner too, ends with each episode once", async () => {
  const storm = await runStorm({
    ...{ episodes: EPISODES, concurrency: 4, killAt: [0.5], killInTraining: false, speed: 30 },
    ...{ killSandboxEveryMs: 500, storeFaultShare: 0.001 },
  });
  onTestFinished(() => rmSync(storm.folder, { recursive: true, force: true }));
  expect([storm.code, storm.kills], storm.stderr).toEqual([0, 1]);
  expect(Object.keys(storm.faults)).toEqual(
    expect.arrayContaining(["Spot interruption", "lost task", "task that never starts", "killed trainer"]),
  );
  expect(Object.keys(storm.recorded)).toEqual(
    expect.arrayContaining(["StageTimedOut", "Sandbox.Timedout", "ECS.TaskFailedToStartException"]),
  );
  const store = await openStore(storm.storeUrl);
  expect(Object.keys(await checkStormyIteration(store, RUN))).toContain("DriverLost");
  await checkTrainedOnAdmittedOnly(store, RUN);
});
