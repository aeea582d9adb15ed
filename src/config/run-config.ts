// The configuration of a run: one schema for everything a person sets. Each key says what it does and why its default
// is what it is; `t1 config schema` prints them. Defaults are T1's (arXiv 2609.11042) where it names a value.
import { z } from "zod";
import { Agent, Sampling } from "../settings/agent-config.ts";
import { RewardConfig, Verifier } from "../settings/grading-config.ts";
import { ModelSource, NewModel } from "../settings/model-config.ts";
import { Count, Numbered } from "../settings/numbers.ts";
import { ALGORITHMS, methodOf } from "../training/algorithms.ts";
import { ENGINE_NAMES } from "../training/engine-names.ts";

const Tasks = z
  .strictObject({
    pool: z.string().min(1).meta({
      description: "Folder of Harbor task folders, relative to this file. Hidden folders are skipped.",
    }),
    shuffle: z.boolean().default(true).meta({
      description:
        "Take tasks in an order shuffled anew each epoch. On: pools are often stored by quality or topic, and a run would drift with them.",
    }),
  })
  .meta({ description: "Where tasks come from." });

const Rollout = z
  .strictObject({
    episodes: Numbered.default(512).meta({
      description: "Episodes an iteration trains on. 512: T1's batch.",
    }),
    launch: Numbered.optional().meta({
      description:
        "Episodes started per iteration, at least `episodes`. Left out: as many as are trained on, so that no slow task is ever dropped. T1 started 560 for 512.",
    }),
    stragglers: z.enum(["wait", "cut"]).default("wait").meta({
      description:
        "wait: every started episode ends by itself. cut: when `episodes` are done the rest is cancelled, which drops the hardest tasks most; the report then shows whom it hit.",
    }),
    attempts: Numbered.default(3).meta({
      description:
        "Tries of the infrastructure per episode before it counts as a failure. 3: most faults pass with one repeat.",
    }),
    concurrency: Count.default(64).meta({
      description:
        "Episodes at work at once on one machine. 64: more sandboxes do not make two cores faster.",
    }),
  })
  .prefault({})
  .meta({ description: "How episodes are run." });

const Evaluation = z
  .strictObject({
    pool: z.string().min(1).meta({
      description: "Folder of tasks, relative to this file; never one that results are claimed on.",
    }),
    every: Count.default(10).meta({ description: "Iterations between evaluations." }),
    episodes: Numbered.default(1).meta({ description: "Episodes per task." }),
  })
  .meta({ description: "Evaluations during the run. Left out: none; `t1 evaluate` makes one at any time." });

const Keep = z
  .strictObject({
    policyEvery: Count.default(10).meta({
      description: "Every so many versions of the policy stay; the newest two always do.",
    }),
    stateEvery: Count.default(50).meta({
      description:
        "Every so many critics and optimizer states stay (they are large); the newest two always do.",
    }),
  })
  .prefault({})
  .meta({ description: "What stays in the store. Trajectories always stay." });

const common = {
  policy: ModelSource.optional().meta({
    description:
      "Model to go on from. A run that learns from demonstrations may begin with a new `model` instead.",
  }),
  model: NewModel.optional(),
  seed: z.int().nonnegative().default(0).meta({ description: "Everything random is derived from it." }),
  tasks: Tasks,
  rollout: Rollout,
  agent: Agent,
  sampling: Sampling,
  reward: RewardConfig,
  verifier: Verifier,
  evaluation: Evaluation.optional(),
  keep: Keep,
  engine: z
    .enum(ENGINE_NAMES)
    .default("onnx")
    .meta({ description: "What trains. onnx: ONNX Runtime on one machine." }),
  threads: z.int().nonnegative().default(0).meta({
    description:
      "Threads of sampler and trainer; 0 takes every core. The same number gives the same bytes; another one may add up small products in another order.",
  }),
};

type Known = (typeof ALGORITHMS)[number];

/** The config of a run with one algorithm: what every run has, and the algorithm's own settings. */
function configOf<const A extends Known>({ name, says, settings }: A) {
  return z.strictObject({
    algorithm: z.literal(name as A["name"]).meta({ description: says }),
    ...common,
    training: settings as A["settings"],
  });
}

// `map` forgets which algorithm stands where; the tuple says it again.
type ConfigsOf<T extends readonly Known[]> = { -readonly [I in keyof T]: ReturnType<typeof configOf<T[I]>> };
const CONFIGS = ALGORITHMS.map(configOf) as unknown as ConfigsOf<typeof ALGORITHMS>;

export const RunConfig = z.discriminatedUnion("algorithm", CONFIGS);
export type RunConfig = z.infer<typeof RunConfig>;

/** Whether a run's iterations play demonstrations of its tasks, not its policy. */
export function playsDemonstrations(config: Pick<RunConfig, "algorithm" | "training">): boolean {
  return methodOf(config).learnsFrom === "demonstrations";
}
