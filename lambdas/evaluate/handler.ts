// Rates and intervals of a closed evaluation.
import { z } from "zod";
import { summarise } from "../../src/rollout/summarise-evaluation.ts";
import { recordUsage } from "../../src/rollout/usage.ts";
import { evaluationPrefix, summaryKey } from "../../src/run/keys.ts";
import { NumberText, Run } from "../schemas.ts";
import { readEnvironment, stageHandler } from "../stage-handler.ts";

export const EvaluateEvent = z.strictObject({ run: Run, evaluation: z.string().min(1) });

export const handler = stageHandler(EvaluateEvent, async ({ run, evaluation }, { store }) => {
  const { T1_EPISODES_PER_DRIVER: episodesPerDriver } = readEnvironment({
    T1_EPISODES_PER_DRIVER: NumberText,
  });
  const phase = evaluationPrefix(run, evaluation);
  await recordUsage({ phase, episodesPerDriver }, { store });
  await summarise({ run, name: evaluation }, { store });
  return { summaryKey: summaryKey(phase) };
});
