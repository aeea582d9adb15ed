// Advantages over the tokens that the policy chose. An observation is no step of the decision process: credit passes
// over it undiminished.
import { InvariantError } from "../failure/errors.ts";

export interface AdvantageSettings {
  readonly gamma: number;
  readonly lambda: number;
}

/** Rewards of a chunk, [N]: the episode's reward on its last trainable token, 0 elsewhere. On a masked token it would be lost. */
export function rewardsOf(mask: Uint8Array, reward: number): Float32Array {
  const rewards = new Float32Array(mask.length);
  const last = mask.lastIndexOf(1);
  if (last === -1) throw new InvariantError("a chunk without a trainable token has no place for its reward");
  rewards[last] = reward;
  return rewards;
}

/**
 * Generalised advantage estimation over trainable tokens (arXiv 1506.02438, equations 11 to 16).
 *
 *   δ_t = r_t + γ·V_{t'} − V_t,   A_t = δ_t + γλ·A_{t'},   t' the next trainable token
 *
 * @param rewards [N] 0 on masked tokens
 * @param values [N] V_t, the critic's output at row t − 1; not read where mask is 0
 * @param mask [N]
 * @param bootstrap value after the last trainable token: 0 when the episode ended, the critic's value where it was cut
 * @returns [N] advantages, 0 on masked tokens
 * @throws InvariantError when lengths differ or a masked token carries a reward
 */
export function gae(
  rewards: Float32Array,
  values: Float32Array,
  mask: Uint8Array,
  { gamma, lambda, bootstrap }: AdvantageSettings & { readonly bootstrap: number },
): Float32Array {
  if (values.length !== rewards.length || mask.length !== rewards.length) {
    throw new InvariantError("gae: lengths differ", {
      rewards: rewards.length,
      values: values.length,
      mask: mask.length,
    });
  }
  const advantages = new Float32Array(rewards.length);
  let nextValue = bootstrap;
  let nextAdvantage = 0;
  for (let t = rewards.length - 1; t >= 0; t--) {
    if (mask[t] === 0) {
      if (rewards[t] !== 0)
        throw new InvariantError("gae: reward on a masked token", { token: t, reward: rewards[t] });
      continue;
    }
    const delta = rewards[t] + gamma * nextValue - values[t];
    nextAdvantage = delta + gamma * lambda * nextAdvantage;
    nextValue = values[t];
    advantages[t] = nextAdvantage;
  }
  return advantages;
}
