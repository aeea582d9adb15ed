// What a run will use, before it has used anything: from its settings and how long an episode and a training job take.
import type { Shape, Usage } from "./cost.ts";

export interface PlannedRun {
  readonly iterations: number;
  /** Started per iteration. */
  readonly episodes: number;
  readonly evaluations: number;
  /** Of one evaluation. */
  readonly evaluationEpisodes: number;
}

/** From episodes that were played, or assumed. */
export interface Pace {
  readonly episodeSeconds: number;
  /** Of an iteration's training job. */
  readonly trainingSeconds: number;
  readonly market: "spot" | "on-demand";
}

/** Of an iteration; an evaluation is one without training. */
function plannedPhase(
  episodes: number,
  { episodeSeconds }: Pace,
  { episodesPerDriver, sandboxesAtOnce }: Shape,
  training?: Usage["training"],
): Usage {
  const groupCount = Math.ceil(episodes / episodesPerDriver);
  const waves = Math.ceil(episodes / sandboxesAtOnce);
  return {
    episodeCount: episodes,
    groupCount,
    sandboxSeconds: episodes * episodeSeconds,
    driverSeconds: groupCount * episodeSeconds,
    rolloutSeconds: waves * episodeSeconds,
    ...(training !== undefined && { training }),
  };
}

/** Every phase of a run, iterations first. */
export function plannedRun(run: PlannedRun, pace: Pace, shape: Shape): Usage[] {
  const { trainingSeconds: seconds, market } = pace;
  return [
    ...Array.from({ length: run.iterations }, () =>
      plannedPhase(run.episodes, pace, shape, { seconds, market }),
    ),
    ...Array.from({ length: run.evaluations }, () => plannedPhase(run.evaluationEpisodes, pace, shape)),
  ];
}
