// Turns the verifier reports of a phase into rewards, and admits one attempt of each episode.
import { z } from "zod";
import { readPlan } from "../rollout/plan.ts";
import { recordLost } from "../rollout/record-lost.ts";
import { score as scorePlan } from "../rollout/score.ts";
import { parsePhase } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { environment } from "../settings/environment.ts";
import { Phase, type StageServices, stage } from "./stage.ts";

export const score = stage({
  input: z.strictObject({ phase: Phase }),
  output: z.strictObject({ lostCount: z.int() }),
  settings: environment("the score stage", {}),
  run: async ({ phase }, _: unknown, { store }: StageServices) => {
    const { config } = await readRun(store, parsePhase(phase).run);
    const plan = await readPlan(store, phase);
    // No driver of the phase is left when this runs: an episode without a record was lost with its driver.
    const lostCount = await recordLost({ phase, plan, now: new Date() }, { store });
    await scorePlan({ phase, plan, rewardConfig: config.reward }, { store });
    return { lostCount };
  },
});
