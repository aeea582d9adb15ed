// Scores what was played. No driver of the phase is left when this runs: what has no record by now was lost.
import { z } from "zod";
import { recordLost } from "../../src/rollout/record-lost.ts";
import { score } from "../../src/rollout/score.ts";
import { parsePhase } from "../../src/run/keys.ts";
import { readRun } from "../../src/run/run-record.ts";
import { Phase } from "../schemas.ts";
import { stageHandler } from "../stage-handler.ts";

export const ScoreEvent = z.strictObject({ phase: Phase });

export const handler = stageHandler(ScoreEvent, async ({ phase }, { store }) => {
  const { config } = await readRun(store, parsePhase(phase).run);
  const lostCount = await recordLost({ phase, now: new Date() }, { store });
  await score({ phase, rewardConfig: config.reward }, { store });
  return { lostCount };
});
