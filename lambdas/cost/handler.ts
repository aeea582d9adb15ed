// What a run has cost so far, and what it does next.
import { z } from "zod";
import { readUsages } from "../../src/pipeline/usage.ts";
import { whatNext } from "../../src/pipeline/what-next.ts";
import { phaseCost, type Shape, totalUsd } from "../../src/planning/cost.ts";
import { stalePrices } from "../../src/planning/prices.ts";
import { readState } from "../../src/store/run-state.ts";
import { logWarning } from "../log.ts";
import { emitMetrics } from "../metrics.ts";
import { FlagText, NumberText, Run } from "../schemas.ts";
import { readEnvironment, stageHandler } from "../stage-handler.ts";

export const CostEvent = z.strictObject({ run: Run, budgetUsd: z.number().positive().nullable() });

export const handler = stageHandler(CostEvent, async ({ run, budgetUsd }, { store }) => {
  const shape = readShape();
  const { state } = await readState(store, run);
  const usages = await readUsages(store, run, state.rolloutsClosed);
  const spentUsd = usages.reduce((sum, usage) => sum + totalUsd(phaseCost(usage, shape)), 0);
  const stale = stalePrices(new Date());
  if (stale !== undefined) logWarning(stale);
  emitMetrics({ SpentUsd: { value: spentUsd, unit: "None" } }, run);
  const next = await whatNext({ run, spentUsd, ...(budgetUsd !== null && { budgetUsd }) }, { store });
  return { ...next, spentUsd };
});

function readShape(): Shape {
  const env = readEnvironment({
    T1_SANDBOX_CPU: NumberText,
    T1_SANDBOX_MEMORY_MIB: NumberText,
    T1_SANDBOX_DISK_GIB: NumberText,
    T1_DRIVER_CPU: NumberText,
    T1_DRIVER_MEMORY_MIB: NumberText,
    T1_SAMPLER_CPU: NumberText,
    T1_SAMPLER_MEMORY_MIB: NumberText,
    T1_SAMPLER_COPIES: NumberText,
    T1_SPOT: FlagText,
    T1_TRAINING_INSTANCE: z.string(),
  });
  const size = (cpu: number, memoryMib: number) => ({ vcpus: cpu / 1024, gib: memoryMib / 1024 });
  return {
    sandbox: {
      ...size(env.T1_SANDBOX_CPU, env.T1_SANDBOX_MEMORY_MIB),
      diskGib: env.T1_SANDBOX_DISK_GIB,
    },
    driver: size(env.T1_DRIVER_CPU, env.T1_DRIVER_MEMORY_MIB),
    sampler: { ...size(env.T1_SAMPLER_CPU, env.T1_SAMPLER_MEMORY_MIB), copies: env.T1_SAMPLER_COPIES },
    spot: env.T1_SPOT,
    trainingInstance: env.T1_TRAINING_INSTANCE,
  };
}
