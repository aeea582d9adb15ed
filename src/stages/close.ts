// Fixes the list of what counts. Closing an iteration also moves the run on to training.
import { z } from "zod";
import type { RunConfig } from "../config/run-config.ts";
import { close as closePhase } from "../rollout/close.ts";
import { parsePhase } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { advanceState, PoolCursor, readState } from "../run/run-state.ts";
import { environment } from "../settings/environment.ts";
import { Iteration, Phase, type StageServices, stage } from "./stage.ts";

export const close = stage({
  input: z.strictObject({
    phase: Phase,
    policyVersion: Iteration,
    /** Of an iteration: where the next one takes its tasks from. */
    pool: PoolCursor.optional(),
  }),
  output: z.strictObject({
    episodeCount: z.int(),
    failedCount: z.int(),
    cancelledCount: z.int(),
    meanReward: z.number(),
  }),
  settings: environment("the close stage", {}),
  run: async ({ phase, policyVersion, pool }, _: unknown, { store, onMetrics }: StageServices) => {
    const of = parsePhase(phase);
    const { config } = await readRun(store, of.run);
    const minimum = of.kind === "iteration" ? minimumEpisodes(config) : 1;
    const { episodes, failed, cancelled } = await closePhase(
      { phase, policyVersion, rewardConfig: config.reward, minimum },
      { store },
    );
    if (of.kind === "iteration" && pool !== undefined)
      await advanceState(store, of.run, await readState(store, of.run), {
        kind: "close-rollouts",
        iteration: of.iteration,
        pool,
      });
    const meanReward = episodes.reduce((sum, { reward }) => sum + reward, 0) / Math.max(1, episodes.length);
    const failedShare = failed.length / Math.max(1, episodes.length + failed.length);
    onMetrics(
      {
        InfrastructureFailureShare: { value: failedShare, unit: "None" },
        MeanReward: { value: meanReward, unit: "None" },
      },
      of.run,
    );
    return {
      episodeCount: episodes.length,
      failedCount: failed.length,
      cancelledCount: cancelled.length,
      meanReward,
    };
  },
});

/** Half of the planned episodes have to end by themselves. With fewer, look for the cause instead of training. */
export function minimumEpisodes({ rollout }: Pick<RunConfig, "rollout">): number {
  return Math.ceil(rollout.episodes / 2);
}
