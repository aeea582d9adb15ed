// An episode as training sees it: its chunks and what it earned.
import { type EndReason, isTruncated } from "../failure/end-reason.ts";
import type { Chunk } from "../trajectory/chunk.ts";

export interface TrainingEpisode {
  readonly id: string;
  readonly chunks: readonly Chunk[];
  readonly endReason: EndReason;
  /** From the reward record; never null here: an episode without reward is not in the batch. */
  readonly reward: number;
}

/** What an episode earns that was cut before the policy decided to stop. */
export type Truncation = "terminal" | "zero" | "bootstrap";

/** Reward to train on, and whether the critic's value follows the last token. Never both a reward and a bootstrap. */
export function outcomeOf(
  { endReason, reward }: TrainingEpisode,
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
