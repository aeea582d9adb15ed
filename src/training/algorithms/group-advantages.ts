// The baseline of algorithms without a critic: an episode is compared with the others of its task.
import { type Batch, outcomeOf, type Truncation } from "../batch.ts";
import type { Metrics } from "../metrics.ts";
import { hasSpread, mean } from "../statistics.ts";

export interface GroupSettings {
  readonly groupSize: number;
  /** What a difference of rewards is divided by: the group's standard deviation, or nothing. */
  readonly scale: "std" | "none";
  readonly truncation: Truncation;
}

/**
 * Group-relative advantages (arXiv 2402.03300, section 4.1.2), one number for all trainable tokens of an episode:
 *
 *   A_i = (r_i − mean r) / std r
 *
 * over the finished episodes of a task, with the standard deviation of a sample (n − 1), as verl, TRL and slime have it.
 * Dr. GRPO (arXiv 2503.20783) leaves the division out, because it weighs tasks more that are nearly solved or nearly
 * hopeless: `scale: none`. A group whose rewards are all equal, or that has one episode, has advantages of 0: nothing is
 * known of what was better. An episode that the infrastructure lost is in no baseline.
 *
 * @returns advantages [N] per chunk, 0 on masked tokens
 */
export function groupAdvantages(
  batch: Batch,
  { groupSize, scale, truncation }: GroupSettings,
): { readonly advantages: Float32Array[]; readonly metrics: Metrics } {
  const rewards = batch.episodes.map(episode => outcomeOf(episode, truncation).reward);
  const groups = [...Map.groupBy(rewards.keys(), index => batch.episodes[index].task).values()];
  const ofEpisode = new Float32Array(rewards.length);
  let uniform = 0;
  for (const group of groups) {
    const own = group.map(index => rewards[index]);
    if (!hasSpread(own)) {
      uniform++;
      continue;
    }
    const baseline = mean(own);
    const variance = own.reduce((sum, reward) => sum + (reward - baseline) ** 2, 0) / (own.length - 1);
    const divisor = scale === "std" ? Math.sqrt(variance) : 1;
    for (const index of group) ofEpisode[index] = (rewards[index] - baseline) / divisor;
  }
  return {
    advantages: batch.chunks.map(({ mask }, chunk) =>
      Float32Array.from(mask, bit => (bit === 1 ? ofEpisode[batch.owners[chunk]] : 0)),
    ),
    metrics: {
      "groups.count": groups.length,
      "groups.uniform": uniform,
      "groups.incomplete": groups.filter(({ length }) => length % groupSize !== 0).length,
    },
  };
}
