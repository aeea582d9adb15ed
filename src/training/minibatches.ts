// Cuts a batch of episodes into the parts that one optimizer step each sees.
import type { RandomStream } from "../random/stream.ts";

/** Shuffles, then cuts into `count` parts whose sizes differ by at most one; parts that would be empty are left out. */
export function minibatches<T>(episodes: readonly T[], count: number, random: RandomStream): T[][] {
  const shuffled = random.shuffle(episodes);
  const bounds = Array.from({ length: count + 1 }, (_, part) => Math.round((part * shuffled.length) / count));
  return bounds
    .slice(1)
    .map((end, part) => shuffled.slice(bounds[part], end))
    .filter(part => part.length > 0);
}
