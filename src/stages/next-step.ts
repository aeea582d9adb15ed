// Decides what a run does next. Everything is read from the store, so whoever runs it can be stopped and started at any
// time.
import { z } from "zod";
import { phaseCost, Shape, totalUsd } from "../planning/cost.ts";
import { stalePrices } from "../planning/prices.ts";
import { readUsages } from "../rollout/usage.ts";
import { evaluationDue } from "../run/evaluation-due.ts";
import { evaluationPrefix, summaryKey } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import { environment, jsonText } from "../settings/environment.ts";
import { Iteration, Run, type StageServices, stage } from "./stage.ts";

export const nextStep = stage({
  input: z.strictObject({ run: Run, budgetUsd: z.number().positive().nullable() }),
  output: z.strictObject({
    next: z.enum(["iterate", "evaluate", "done", "stopped", "budget-spent"]),
    /** The iteration to run; equal to the version of the newest policy. */
    iteration: Iteration,
    /** Whether it is the run's last. */
    last: z.boolean(),
    /** Name of the evaluation that is due. */
    evaluation: z.string().optional(),
    spentUsd: z.number(),
  }),
  settings: environment("the next-step stage", { shape: ["T1_SHAPE", jsonText(Shape)] }),
  run: async ({ run, budgetUsd }, { shape }, { store, onMetrics, onWarning }: StageServices) => {
    const { config } = await readRun(store, run);
    const { state } = await readState(store, run);
    const usages = await readUsages(store, run, state.rolloutsClosed);
    const spentUsd = usages.reduce((sum, usage) => sum + totalUsd(phaseCost(usage, shape)), 0);
    const stale = stalePrices(new Date());
    if (stale !== undefined) onWarning(stale);
    onMetrics({ SpentUsd: { value: spentUsd, unit: "None" } }, run);

    const iteration = state.policyPublished;
    const { iterations } = config.training;
    const at = { iteration, last: iteration + 1 >= iterations, spentUsd };
    if (state.stopped !== undefined) return { next: "stopped" as const, ...at };
    const due = evaluationDue(config, iteration);
    const isMissing =
      due !== undefined && (await store.head(summaryKey(evaluationPrefix(run, due)))) === undefined;
    if (iteration >= iterations && !isMissing) return { next: "done" as const, ...at };
    if (budgetUsd !== null && spentUsd >= budgetUsd) return { next: "budget-spent" as const, ...at };
    return isMissing
      ? { next: "evaluate" as const, ...at, evaluation: due }
      : { next: "iterate" as const, ...at };
  },
});
