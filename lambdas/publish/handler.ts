// Makes a trained version the run's newest policy, and says whether an evaluation of it is due.
import { z } from "zod";
import { publish } from "../../src/learning/publish.ts";
import { recordUsage } from "../../src/rollout/usage.ts";
import { evaluationDue } from "../../src/run/evaluation-due.ts";
import { iterationPrefix } from "../../src/run/keys.ts";
import { readRun } from "../../src/run/run-record.ts";
import { Iteration, NumberText, Run } from "../schemas.ts";
import { readEnvironment, stageHandler } from "../stage-handler.ts";

export const PublishEvent = z.strictObject({
  run: Run,
  iteration: Iteration,
  training: z.strictObject({
    market: z.enum(["spot", "on-demand"]),
    startedAtMs: z.number(),
    stoppedAtMs: z.number(),
  }),
});

export const handler = stageHandler(PublishEvent, async ({ run, iteration, training }, { store }) => {
  const { T1_EPISODES_PER_DRIVER: episodesPerDriver } = readEnvironment({
    T1_EPISODES_PER_DRIVER: NumberText,
  });
  const { market, startedAtMs, stoppedAtMs } = training;
  const seconds = Math.max(0, stoppedAtMs - startedAtMs) / 1000;
  // Before publishing: whoever looks at the next iteration's budget finds the cost of this one.
  await recordUsage(
    { phase: iterationPrefix(run, iteration), episodesPerDriver, training: { seconds, market } },
    { store },
  );
  const version = iteration + 1;
  await publish({ run, version }, { store });
  const { config } = await readRun(store, run);
  const evaluation = evaluationDue(config, version);
  return {
    version,
    evaluationDue: evaluation !== undefined,
    ...(evaluation !== undefined && { evaluation }),
  };
});
