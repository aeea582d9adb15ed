// Writes rates and intervals of a closed evaluation.
import { z } from "zod";
import { summarise as summariseEvaluation } from "../rollout/summarise-evaluation.ts";
import { recordUsage } from "../rollout/usage.ts";
import { evaluationPrefix, summaryKey } from "../run/keys.ts";
import { CountText, environment } from "../settings/environment.ts";
import { Run, type StageServices, stage } from "./stage.ts";

export const summarise = stage({
  input: z.strictObject({ run: Run, evaluation: z.string().min(1) }),
  output: z.strictObject({ summaryKey: z.string() }),
  settings: environment("the summarise stage", {
    episodesPerDriver: ["T1_EPISODES_PER_DRIVER", CountText],
  }),
  run: async ({ run, evaluation }, { episodesPerDriver }, { store }: StageServices) => {
    const phase = evaluationPrefix(run, evaluation);
    await recordUsage({ phase, episodesPerDriver }, { store });
    await summariseEvaluation({ run, name: evaluation }, { store });
    return { summaryKey: summaryKey(phase) };
  },
});
