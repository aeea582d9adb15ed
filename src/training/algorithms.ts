// The algorithms that there are. A new one is a file in algorithms/ and a line here.
import { InvariantError } from "../failure/errors.ts";
import type { Method } from "./algorithms/algorithm.ts";
import { grpo } from "./algorithms/grpo.ts";
import { gspo } from "./algorithms/gspo.ts";
import { ppo } from "./algorithms/ppo.ts";
import { sft } from "./algorithms/sft.ts";

export const ALGORITHMS = [sft, ppo, grpo, gspo] as const;

/** An algorithm with the settings that a run's config gives it. */
export function methodOf({
  algorithm,
  training,
}: {
  readonly algorithm: string;
  readonly training: unknown;
}): Method {
  const found = ALGORITHMS.find(({ name }) => name === algorithm);
  if (found === undefined) throw new InvariantError("no such algorithm", { algorithm });
  return found.method(training);
}
