// What a run has cost so far, and what it does next.
import { z } from "zod";
import { phaseCost, Shape, totalUsd } from "../../src/planning/cost.ts";
import { stalePrices } from "../../src/planning/prices.ts";
import { readUsages } from "../../src/rollout/usage.ts";
import { readState } from "../../src/run/run-state.ts";
import { whatNext } from "../../src/run/what-next.ts";
import { logWarning } from "../log.ts";
import { emitMetrics } from "../metrics.ts";
import { Run } from "../schemas.ts";
import { readEnvironment, stageHandler } from "../stage-handler.ts";

const ShapeText = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(Shape);

export const CostEvent = z.strictObject({ run: Run, budgetUsd: z.number().positive().nullable() });

export const handler = stageHandler(CostEvent, async ({ run, budgetUsd }, { store }) => {
  const { T1_SHAPE: shape } = readEnvironment({ T1_SHAPE: ShapeText });
  const { state } = await readState(store, run);
  const usages = await readUsages(store, run, state.rolloutsClosed);
  const spentUsd = usages.reduce((sum, usage) => sum + totalUsd(phaseCost(usage, shape)), 0);
  const stale = stalePrices(new Date());
  if (stale !== undefined) logWarning(stale);
  emitMetrics({ SpentUsd: { value: spentUsd, unit: "None" } }, run);
  const next = await whatNext({ run, spentUsd, ...(budgetUsd !== null && { budgetUsd }) }, { store });
  return { ...next, spentUsd };
});
