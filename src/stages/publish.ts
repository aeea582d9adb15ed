// Makes a trained version the run's newest policy, and says whether an evaluation of it is due.
import { z } from "zod";
import { publish as publishVersion } from "../learning/publish.ts";
import { recordUsage } from "../rollout/usage.ts";
import { evaluationDue } from "../run/evaluation-due.ts";
import { iterationPrefix } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { CountText, environment } from "../settings/environment.ts";
import { Iteration, Run, type StageServices, stage } from "./stage.ts";

export const publish = stage({
  input: z.strictObject({
    run: Run,
    iteration: Iteration,
    /** How long the training job worked, and where. */
    training: z.strictObject({
      market: z.enum(["spot", "on-demand"]),
      startedAtMs: z.number(),
      stoppedAtMs: z.number(),
    }),
  }),
  output: z.strictObject({
    version: Iteration,
    evaluationDue: z.boolean(),
    evaluation: z.string().optional(),
  }),
  settings: environment("the publish stage", { episodesPerDriver: ["T1_EPISODES_PER_DRIVER", CountText] }),
  run: async ({ run, iteration, training }, { episodesPerDriver }, { store }: StageServices) => {
    const { market, startedAtMs, stoppedAtMs } = training;
    const seconds = Math.max(0, stoppedAtMs - startedAtMs) / 1000;
    // Before publishing, so that the next iteration's budget includes the cost of this one.
    await recordUsage(
      { phase: iterationPrefix(run, iteration), episodesPerDriver, training: { seconds, market } },
      { store },
    );
    const version = iteration + 1;
    await publishVersion({ run, version }, { store });
    const evaluation = evaluationDue((await readRun(store, run)).config, version);
    return { version, evaluationDue: evaluation !== undefined, evaluation };
  },
});
