// Chooses the episodes of an iteration or an evaluation, and shards what is still to be played: one driver per shard.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { planEvaluation, planIteration } from "../rollout/plan.ts";
import { samplingVersion, writeShards } from "../rollout/shards.ts";
import { evaluationPrefix, iterationPrefix } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { PoolCursor } from "../run/run-state.ts";
import { CountText, environment } from "../settings/environment.ts";
import { Iteration, Phase, Run, type StageServices, stage } from "./stage.ts";

const OfIteration = z.strictObject({ run: Run, iteration: Iteration, overlap: z.boolean() });
const OfEvaluation = z.strictObject({
  run: Run,
  evaluation: z.string().min(1),
  version: Iteration,
  /** null: the run's own pool for evaluations, as often as its config says. */
  pool: z.strictObject({ folder: z.string().min(1), episodes: z.int().positive() }).nullable(),
});

export const plan = stage({
  input: z.union([OfIteration, OfEvaluation]),
  output: z.strictObject({
    phase: Phase,
    /** The version that plays. */
    policyVersion: Iteration,
    episodeCount: z.int(),
    /** Of an iteration: where the next one takes its tasks from. */
    pool: PoolCursor.optional(),
    /** List of shards, one line per driver. */
    shardsKey: z.string(),
    shardCount: z.int(),
  }),
  settings: environment("the plan stage", { episodesPerDriver: ["T1_EPISODES_PER_DRIVER", CountText] }),
  run: async (event, { episodesPerDriver }, { store, onMetrics }: StageServices) => {
    const { lines, ...planned } =
      "iteration" in event ? await planOfIteration(event, store) : await planOfEvaluation(event, store);
    const { phase, policyVersion } = planned;
    const shards = await writeShards(
      { run: event.run, phase, plan: lines, episodesPerDriver, policyVersion },
      { store },
    );
    onMetrics({ Shards: { value: shards.shardCount, unit: "Count" } }, event.run);
    return { ...planned, episodeCount: lines.length, ...shards };
  },
});

async function planOfIteration(
  { run, iteration, overlap }: z.infer<typeof OfIteration>,
  store: StageServices["store"],
) {
  const { lines, next } = await planIteration({ run, iteration }, { store });
  return {
    phase: iterationPrefix(run, iteration),
    policyVersion: samplingVersion(iteration, overlap),
    pool: next,
    lines,
  };
}

async function planOfEvaluation(
  { run, evaluation, version, pool }: z.infer<typeof OfEvaluation>,
  store: StageServices["store"],
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
  const lines = await planEvaluation(
    { phase, poolFolder: folder, repeats: episodes, seed: config.seed },
    { store },
  );
  return { phase, policyVersion: version, lines };
}
