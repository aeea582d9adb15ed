// The episodes that one iteration trains on, and their chunks in one list. Numbers per chunk are arrays over `chunks`;
// whoever needs a part of the batch picks chunk numbers and never copies or regroups chunks.
import { type EndReason, isTruncated } from "../failure/end-reason.ts";
import type { Chunk } from "../trajectory/chunk.ts";

export interface TrainingEpisode {
  readonly id: string;
  /** Name of the task in the pool; episodes of one task are a group. */
  readonly task: string;
  readonly chunks: readonly Chunk[];
  readonly endReason: EndReason;
  /** From the reward record. An episode without a reward is not in a batch. */
  readonly reward: number;
}

export interface Batch {
  /** Each with at least one chunk. */
  readonly episodes: readonly TrainingEpisode[];
  /** All chunks, episode after episode. */
  readonly chunks: readonly Chunk[];
  /** Per chunk, the index of its episode. */
  readonly owners: readonly number[];
  /** Per episode, the indices of its chunks. */
  readonly chunksOf: readonly (readonly number[])[];
}

/** Episodes without a chunk to train are left out. */
export function toBatch(all: readonly TrainingEpisode[]): Batch {
  const episodes = all.filter(({ chunks }) => chunks.length > 0);
  const owners = episodes.flatMap(({ chunks }, episode) => chunks.map(() => episode));
  const chunksOf: number[][] = episodes.map(() => []);
  for (const [chunk, episode] of owners.entries()) chunksOf[episode].push(chunk);
  return { episodes, chunks: episodes.flatMap(({ chunks }) => chunks), owners, chunksOf };
}

/** What an episode earns that was cut before the policy decided to stop. */
export type Truncation = "terminal" | "zero" | "bootstrap";

/** Reward to train on, and whether the critic's value follows the last token. Never both a reward and a bootstrap. */
export function outcomeOf(
  { endReason, reward }: Pick<TrainingEpisode, "endReason" | "reward">,
  truncation: Truncation,
): { readonly reward: number; readonly bootstrap: boolean } {
  if (!isTruncated(endReason)) return { reward, bootstrap: false };
  switch (truncation) {
    case "terminal":
      return { reward, bootstrap: false };
    case "zero":
      return { reward: 0, bootstrap: false };
    case "bootstrap":
      return { reward: 0, bootstrap: true };
    default:
      return truncation satisfies never;
  }
}
