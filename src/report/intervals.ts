// 95 % intervals of means over the episodes of some iterations.
import { wilson } from "../evaluation/shares.ts";
import type { ClosedEpisode } from "../run/records.ts";
import type { Interval } from "./chart.ts";
import { closedIterations, type IterationData } from "./read-run.ts";

/** The normal quantile of a central 95 %. */
const Z = 1.959964;

/** Wilson's score interval of the share of resolved episodes. @returns undefined without episodes */
export function resolvedInterval(iterations: readonly IterationData[]): Interval | undefined {
  const episodes = episodesOf(iterations);
  if (episodes.length === 0) return undefined;
  const successes = episodes.filter(({ resolved }) => resolved).length;
  return wilson(successes / episodes.length, episodes.length);
}

/**
 * The normal interval of a mean, mean ± 1.96 · s / √n. It takes episodes as independent and is too narrow where
 * episodes of one task resemble each other.
 *
 * @returns undefined for fewer than two episodes
 */
export function meanInterval(pick: (episode: ClosedEpisode) => number) {
  return (iterations: readonly IterationData[]): Interval | undefined => {
    const values = episodesOf(iterations).map(pick);
    const { length: size } = values;
    if (size < 2) return undefined;
    const mean = values.reduce((sum, value) => sum + value, 0) / size;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (size - 1);
    const half = Z * Math.sqrt(variance / size);
    return { low: mean - half, high: mean + half };
  };
}

function episodesOf(iterations: readonly IterationData[]): readonly ClosedEpisode[] {
  return closedIterations(iterations).flatMap(({ closed }) => closed.episodes);
}
