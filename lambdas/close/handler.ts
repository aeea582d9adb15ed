// Fixes the list of what counts; of an iteration, it also moves the run on to training.
import { z } from "zod";
import { close, minimumEpisodes } from "../../src/rollout/close.ts";
import { parsePhase } from "../../src/run/keys.ts";
import { readRun } from "../../src/run/run-record.ts";
import { advanceState, PoolCursor, readState } from "../../src/run/run-state.ts";
import { emitMetrics } from "../metrics.ts";
import { Iteration, Phase } from "../schemas.ts";
import { stageHandler } from "../stage-handler.ts";

export const CloseEvent = z.strictObject({
  phase: Phase,
  policyVersion: Iteration,
  /** Of an iteration: where the next one takes its tasks from. */
  pool: PoolCursor.optional(),
});

export const handler = stageHandler(CloseEvent, async ({ phase, policyVersion, pool }, { store }) => {
  const of = parsePhase(phase);
  const { config } = await readRun(store, of.run);
  const minimum = of.kind === "iteration" ? minimumEpisodes(config) : 1;
  const { episodes, failed, cancelled } = await close(
    { phase, policyVersion, rewardConfig: config.reward, minimum },
    { store },
  );
  if (of.kind === "iteration" && pool !== undefined) {
    const move = { kind: "close-rollouts", iteration: of.iteration, pool } as const;
    await advanceState(store, of.run, await readState(store, of.run), move);
  }
  const counts = {
    episodeCount: episodes.length,
    failedCount: failed.length,
    cancelledCount: cancelled.length,
    meanReward: episodes.reduce((sum, { reward }) => sum + reward, 0) / Math.max(1, episodes.length),
  };
  emitMetrics(
    {
      InfrastructureFailureShare: {
        value: failed.length / Math.max(1, episodes.length + failed.length),
        unit: "None",
      },
      MeanReward: { value: counts.meanReward, unit: "None" },
    },
    of.run,
  );
  return counts;
});
