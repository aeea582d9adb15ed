// Chooses the episodes of an iteration or of an evaluation, and groups what is still to be played.
import { z } from "zod";
import { InputError } from "../../src/failure/errors.ts";
import { samplingVersion, writeGroups } from "../../src/rollout/groups.ts";
import { planEvaluation, planIteration } from "../../src/rollout/plan.ts";
import { evaluationPrefix, iterationPrefix } from "../../src/run/keys.ts";
import { readRun } from "../../src/run/run-record.ts";
import { emitMetrics } from "../metrics.ts";
import { Iteration, NumberText, Run } from "../schemas.ts";
import { readEnvironment, type StageContext, stageHandler } from "../stage-handler.ts";

const OfIteration = z.strictObject({ run: Run, iteration: Iteration, overlap: z.boolean() });
const OfEvaluation = z.strictObject({
  run: Run,
  evaluation: z.string().min(1),
  version: Iteration,
  /** null: the run's own pool for evaluations, as often as its config says. */
  pool: z.strictObject({ folder: z.string().min(1), episodes: z.int().positive() }).nullable(),
});
export const PlanEvent = z.union([OfIteration, OfEvaluation]);

export const handler = stageHandler(PlanEvent, async (event, context) => {
  const planned =
    "iteration" in event ? await planOfIteration(event, context) : await planOfEvaluation(event, context);
  const { T1_EPISODES_PER_DRIVER: size } = readEnvironment({ T1_EPISODES_PER_DRIVER: NumberText });
  const { phase, policyVersion } = planned;
  const groups = await writeGroups({ run: event.run, phase, size, policyVersion }, context);
  emitMetrics({ Groups: { value: groups.groupCount, unit: "Count" } }, event.run);
  return { ...planned, ...groups };
});

async function planOfIteration(
  { run, iteration, overlap }: z.infer<typeof OfIteration>,
  { store }: StageContext,
) {
  const { episodeCount, next } = await planIteration({ run, iteration }, { store });
  return {
    phase: iterationPrefix(run, iteration),
    policyVersion: samplingVersion(iteration, overlap),
    episodeCount,
    pool: next,
  };
}

async function planOfEvaluation(
  { run, evaluation, version, pool }: z.infer<typeof OfEvaluation>,
  { store }: StageContext,
) {
  const { config } = await readRun(store, run);
  const { evaluation: own } = config;
  const { folder, episodes } = pool ?? (own && { folder: own.pool, episodes: own.episodes }) ?? {};
  if (folder === undefined || episodes === undefined) {
    throw new InputError({
      what: "the run has no pool for evaluations",
      where: run,
      expected: "evaluation.pool in its config, or a pool of the evaluation's own",
    });
  }
  const phase = evaluationPrefix(run, evaluation);
  const { episodeCount } = await planEvaluation(
    { phase, poolFolder: folder, repeats: episodes, seed: config.seed },
    { store },
  );
  return { phase, policyVersion: version, episodeCount };
}
