// What a run has cost and what it will: from what its phases used, priced by the shape of a deployment. A run of this
// machine can be asked too: what the same episodes would have cost there, in the time that they took here.
import type { RunConfig } from "../config/run-config.ts";
import { type CostItem, phaseCost, type Shape, totalUsd, type Usage } from "../planning/cost.ts";
import { type Pace, type PlannedRun, plannedRun } from "../planning/planned-usage.ts";
import { evaluationPrefix, iterationPrefix, type PhasePrefix, planKey, timingsKey } from "../run/keys.ts";
import { Timings } from "../run/records.ts";
import { readRun } from "../run/run-record.ts";
import { openPlannablePool } from "../run/stored-pool.ts";
import { readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { measureUsage, readUsage } from "./usage.ts";

interface PhaseCost {
  /** "iteration 1", "evaluation during-000010" */
  readonly phase: string;
  readonly usage: Usage;
  readonly items: readonly CostItem[];
  readonly usd: number;
  /** Undefined before any episode ran. */
  readonly usdPerEpisode?: number;
}

export interface RunCost {
  readonly run: string;
  readonly phases: readonly PhaseCost[];
  readonly actualUsd: number;
  /** Of the whole run, at this pace. */
  readonly plannedUsd: number;
  readonly plannedPerIterationUsd: number;
  readonly plannedPerEpisodeUsd: number;
  readonly pace: Pace & { readonly from: "what was played so far" | "assumptions" };
}

/** Where nothing was played yet: half an hour of an episode and an hour of training. */
const ASSUMED_SECONDS = { episode: 1800, training: 3600 };

export async function runCost(
  { run, shape }: { readonly run: string; readonly shape: Shape },
  { store }: { readonly store: ObjectStore },
): Promise<RunCost> {
  const { config } = await readRun(store, run);
  const phases = await actualPhases(run, config, shape, store);
  const pace = paceOf(phases, config, shape);
  const planned = await plannedOf(config, store);
  const usages = plannedRun(planned, pace, shape).map(usage => totalUsd(phaseCost(usage, shape)));
  const iterations = usages.slice(0, planned.iterations);
  const perIteration = sum(iterations) / Math.max(1, planned.iterations);
  return {
    ...{ run, phases, pace },
    actualUsd: sum(phases.map(({ usd }) => usd)),
    plannedUsd: sum(usages),
    plannedPerIterationUsd: perIteration,
    plannedPerEpisodeUsd: perIteration / planned.episodes,
  };
}

async function actualPhases(
  run: string,
  config: RunConfig,
  shape: Shape,
  store: ObjectStore,
): Promise<PhaseCost[]> {
  const evaluations = await Array.fromAsync(store.folders(`runs/${run}/evaluations/`));
  const phases: [string, PhasePrefix][] = [
    ...Array.from({ length: config.training.iterations }, (_, iteration): [string, PhasePrefix] => [
      `iteration ${iteration + 1}`,
      iterationPrefix(run, iteration),
    ]),
    ...evaluations.map((name): [string, PhasePrefix] => [`evaluation ${name}`, evaluationPrefix(run, name)]),
  ];
  const costs: PhaseCost[] = [];
  for (const [phase, prefix] of phases) {
    const usage = (await readUsage(store, prefix)) ?? (await measured(prefix, shape, store));
    if (usage === undefined || (usage.episodeCount === 0 && usage.training === undefined)) continue;
    const items = phaseCost(usage, shape);
    const usd = totalUsd(items);
    const { episodeCount } = usage;
    costs.push({ phase, usage, items, usd, ...(episodeCount > 0 && { usdPerEpisode: usd / episodeCount }) });
  }
  return costs;
}

/** One that nobody measured: of this machine, or still at work. */
async function measured(
  phase: PhasePrefix,
  { episodesPerDriver }: Shape,
  store: ObjectStore,
): Promise<Usage | undefined> {
  if ((await store.head(planKey(phase))) === undefined) return undefined;
  const timings =
    (await store.head(timingsKey(phase))) === undefined
      ? {}
      : await readJson(store, timingsKey(phase), Timings);
  const training = timings.train === undefined ? undefined : trained(timings.train);
  return measureUsage({ phase, episodesPerDriver, ...(training !== undefined && { training }) }, { store });
}

function trained(ms: number): NonNullable<Usage["training"]> {
  return { seconds: ms / 1000, market: "on-demand" };
}

function paceOf(phases: readonly PhaseCost[], config: RunConfig, { spot }: Shape): RunCost["pace"] {
  const usages = phases.map(({ usage }) => usage);
  const episodes = sum(usages.map(({ episodeCount }) => episodeCount));
  const played = sum(usages.map(({ sandboxSeconds }) => sandboxSeconds));
  const trainings = usages.flatMap(({ training }) => (training === undefined ? [] : [training]));
  const market = trainings.at(-1)?.market ?? (spot ? "spot" : "on-demand");
  const trainingSeconds =
    trainings.length === 0
      ? ASSUMED_SECONDS.training
      : sum(trainings.map(({ seconds }) => seconds)) / trainings.length;
  if (played > 0)
    return { episodeSeconds: played / episodes, trainingSeconds, market, from: "what was played so far" };
  const episodeSeconds = config.agent.episodeSeconds ?? ASSUMED_SECONDS.episode;
  return { episodeSeconds, trainingSeconds, market, from: "assumptions" };
}

/** Version 0 is evaluated too, before anything else. */
async function plannedOf(
  { training: { iterations }, rollout, evaluation }: RunConfig,
  store: ObjectStore,
): Promise<PlannedRun> {
  const episodes = rollout.launch ?? rollout.episodes;
  if (evaluation === undefined) return { iterations, episodes, evaluations: 0, evaluationEpisodes: 0 };
  const { names } = await openPlannablePool(evaluation.pool, store);
  return {
    ...{ iterations, episodes },
    evaluations: Math.floor(iterations / evaluation.every) + 1,
    evaluationEpisodes: names.length * evaluation.episodes,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
