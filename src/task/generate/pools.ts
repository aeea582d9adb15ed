// The pools of generated tasks. Pools for training, for choosing settings and for claiming results share no name;
// held-out pools do not even share the combination or the family.
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { composeTask, type GeneratedTask, type TaskKind } from "./compose.ts";
import { inventWords } from "./pseudo-words.ts";
import { DEVELOPMENT_WORDS, HELD_OUT_WORDS, TRAIN_WORDS } from "./words.ts";

export const POOL_NAMES = [
  "train",
  "demonstrations",
  "development",
  "held-out-parameters",
  "held-out-families",
] as const;
export type PoolName = (typeof POOL_NAMES)[number];

interface PoolPlan {
  readonly purpose: string;
  /** Kinds in turn; a pool of n tasks takes the first n of the repeated list. */
  readonly kinds: readonly TaskKind[];
  readonly words: () => readonly string[];
  /** Default number of tasks. */
  readonly count: number;
}

/** Share of invented words among the names of training tasks. */
const INVENTED_SHARE = 0.7;
const INVENTED_COUNT = 6000;

export const POOLS: Record<PoolName, PoolPlan> = {
  train: {
    purpose: "reinforcement learning",
    kinds: ["single", "pair"],
    words: trainingNames,
    count: 4096,
  },
  demonstrations: {
    purpose: "supervised training of the base policy; every task carries a demonstration",
    kinds: ["single", "pair"],
    words: trainingNames,
    count: 12_000,
  },
  development: {
    purpose: "choosing settings and the base policy",
    kinds: ["single", "pair"],
    words: () => DEVELOPMENT_WORDS,
    count: 192,
  },
  "held-out-parameters": {
    purpose:
      "results: trained families with other names and values, and pairs of families never trained together",
    kinds: ["single", "pair", "held-out-pair"],
    words: () => HELD_OUT_WORDS,
    count: 192,
  },
  "held-out-families": {
    purpose: "results: families never trained",
    kinds: ["held-out-family"],
    words: () => HELD_OUT_WORDS,
    count: 48,
  },
};

/** The tasks of a pool, in order; a longer pool begins with the shorter one. */
export function* generatePool(
  name: PoolName,
  { count, seed }: { readonly count: number; readonly seed: number },
): Generator<GeneratedTask> {
  const { kinds, words } = POOLS[name];
  const names = words();
  const seen = new Set<string>();
  for (let index = 0, attempt = 0; index < count; attempt++) {
    const task = composeTask(kinds[index % kinds.length], names, deriveSeed(seed, name, attempt));
    if (seen.has(task.instruction)) continue;
    seen.add(task.instruction);
    index++;
    yield task;
  }
}

/** Invented words and real ones, the real ones repeated up to their share. */
function trainingNames(): string[] {
  const invented = inventWords(INVENTED_COUNT, new RandomStream(deriveSeed("invented words")));
  const repeats = Math.round((INVENTED_COUNT * (1 - INVENTED_SHARE)) / INVENTED_SHARE / TRAIN_WORDS.length);
  return [...invented, ...Array.from({ length: repeats }, () => TRAIN_WORDS).flat()];
}
