// The configuration of a run: one schema for everything a person sets. Each key says what it does and why its default
// is what it is; `t1 config schema` prints them. Defaults are T1's (arXiv 2609.11042) where it names a value.
import { z } from "zod";
import { LAST_NUMBER } from "../store/keys.ts";

const Count = z.int().positive();
/** What is numbered in the store. */
const Numbered = Count.max(LAST_NUMBER);
const Rate = z.number().positive();
const Share = z.number().min(0).max(1);

/** A model folder: of this machine, or one that another run of the same store made. */
const ModelSource = z
  .union([
    z.string().min(1),
    z.strictObject({
      run: z.string().min(1).meta({ description: "Name of a run in the same store." }),
      version: z
        .int()
        .nonnegative()
        .max(LAST_NUMBER)
        .optional()
        .meta({ description: "Version to take; the newest when left out." }),
    }),
  ])
  .meta({
    description: "A Hugging Face model folder, relative to this file, or {run, version} of the same store.",
  });

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

const Summary = z
  .strictObject({
    freeTokens: Count.default(8000).meta({
      description:
        "A summary is made when fewer tokens of the context are left. 8000: Terminus-2's. It has to hold what a turn adds and the three calls, or each summary would forget the newest turns; this is checked.",
    }),
    answerTokens: Count.default(1024).meta({
      description:
        "Sampled tokens of each of the three calls (summary, questions, answers). One that needs more is dropped, and the work goes on from the screen and a few sentences.",
    }),
    train: z.boolean().default(true).meta({
      description:
        "Train the calls like turns, under the episode's reward. On: the policy chose those words, and what they leave out decides the rest of the episode. Off: they are recorded, with their receipts, and no part of any loss.",
    }),
  })
  .meta({
    description:
      "What happens when the context is full (protocols terminus-json and terminus-xml). Left out: the episode ends as cut, so that no run pays for summaries it did not ask for. Given, even empty: the policy hands its work over to itself in a new conversation, and the episode goes on in a new chunk.",
  });

const Agent = z
  .strictObject({
    protocol: z.enum(["compact", "terminus-json", "terminus-xml", "bash-tool"]).default("compact").meta({
      description:
        "How answers and observations are written. compact: one shell command per answer, or done; made for small models, hence the default. terminus-json, terminus-xml: keystrokes into a terminal and its screen, as Harbor's Terminus-2, which T1 trained under. bash-tool: the tool call bash, for models whose chat template knows tools (Qwen3); an answer without a call ends the episode.",
    }),
    turns: Count.default(60).meta({
      description: "Answers per episode. 60: one of the values T1 names (it names several).",
    }),
    answerTokens: Count.default(1024).meta({
      description: "Sampled tokens per answer; an answer that needs more ends the episode as cut.",
    }),
    contextTokens: Count.default(8192).meta({ description: "Tokens of a whole episode." }),
    observationTokens: Count.default(1024).meta({
      description:
        "Tokens of one observation; longer ones lose their middle. Terminus-2 by itself allows 10,000 bytes, which most vocabularies make 2,500 to 5,000 tokens of.",
    }),
    commandSeconds: Rate.default(30).meta({
      description:
        "Time of one command; then it is ended and the agent told so. In a terminal nothing is ended: there each command says how long to wait, at most 60 s.",
    }),
    episodeSeconds: Rate.optional().meta({
      description:
        "Time of an episode, where its task does not set one. Waiting for the sampler does not count.",
    }),
    outputBytes: Count.default(65_536).meta({
      description: "Kept output of one command; more loses its middle.",
    }),
    endOfTurn: z
      .string()
      .min(1)
      .default("<|im_end|>")
      .meta({ description: "Special token that ends an answer; it must be the one of the chat template." }),
    system: z.string().optional().meta({
      description:
        "System message. Left out: none, small models need no instructions they were not trained on.",
    }),
    summary: Summary.optional(),
  })
  .prefault({})
  .meta({ description: "The harness around the policy." });

const Sampling = z
  .strictObject({
    temperature: z.number().min(0).default(1).meta({
      description: "1: the distribution that is trained. 0 (evaluation only) takes the likeliest token.",
    }),
    topP: z.number().gt(0).max(1).default(1).meta({
      description: "Training allows only 1: anything else samples from another distribution than is trained.",
    }),
    topK: z
      .int()
      .nonnegative()
      .default(0)
      .meta({ description: "Training allows only 0 (all tokens), for the same reason." }),
  })
  .prefault({})
  .meta({ description: "How tokens are drawn." });

export const RewardConfig = z
  .strictObject({
    kind: z.enum(["dense", "ratio", "binary"]).default("dense").meta({
      description:
        "dense: passing assertions / scale. ratio: max(outcome, 0.4 · passing / total). binary: the outcome.",
    }),
    scale: Rate.default(20).meta({
      description:
        "S of the dense reward, the same for the whole run; near the 90th percentile of the pool's assertion counts. 20: T1's pool.",
    }),
  })
  .prefault({})
  .meta({ description: "What an episode earns." });
export type RewardConfig = z.infer<typeof RewardConfig>;

export const VerifierModeName = z.enum(["hardened", "shared", "separate"]);

const Verifier = z
  .strictObject({
    mode: VerifierModeName.default("hardened").meta({
      description:
        "Where tests run. hardened: in a clean sandbox that gets the agent's files, but for those that would run on their own. shared: in the agent's sandbox, as Harbor does it; for pools whose tasks change programs of the image. separate: in a sandbox that gets declared artifacts only; tasks that ask for it always have it. hardened, because a policy finds what a test script trusts.",
    }),
    keepFiles: z.boolean().default(false).meta({
      description:
        "Keep the files that each episode left (up to 64 MB), so that `t1 regrade` can grade it again without the agent. Off: they take most of a store.",
    }),
  })
  .prefault({})
  .meta({ description: "How episodes are graded." });

const adam = {
  weightDecay: z
    .number()
    .nonnegative()
    .default(0.1)
    .meta({ description: "Decoupled weight decay; norm weights are not decayed." }),
  beta1: Share.default(0.9).meta({ description: "Decay of the first moment." }),
  beta2: Share.default(0.98).meta({
    description: "Decay of the second moment. 0.98: T1; adapts faster than 0.999.",
  }),
  epsilon: Rate.default(1e-8).meta({ description: "Added to the root of the second moment." }),
  clipNorm: Rate.default(1).meta({
    description: "Gradients with a larger global norm are scaled down to it.",
  }),
};

const Actor = z
  .strictObject({
    learningRate: Rate.default(1e-6).meta({
      description: "Constant. 1e-6: T1, for 122 billion parameters; small models want 100 times as much.",
    }),
    clipRange: Rate.default(0.2).meta({ description: "ε of the clipped surrogate, on both sides." }),
    passes: Count.default(1).meta({
      description: "Passes over each batch. 1: later passes train on the policy's past.",
    }),
    ...adam,
  })
  .prefault({})
  .meta({ description: "Updates of the policy." });

const Critic = z
  .strictObject({
    from: ModelSource.optional().meta({
      description:
        "A warmed-up critic to start from. Left out: the policy's body with a value head of zeros.",
    }),
    onlyIterations: z.int().nonnegative().default(2).meta({
      description:
        "First iterations of the run in which only the critic learns. 2: T1's re-calibration after a warm-up.",
    }),
    onlyPasses: Count.default(1).meta({
      description: "Critic's passes over each batch in those iterations.",
    }),
    learningRate: Rate.default(1.5e-5).meta({
      description:
        "Constant. 1.5e-5: T1; fifteen times the actor's, since values must keep up with the policy.",
    }),
    clipRange: Rate.default(0.2).meta({
      description: "How far a value may move from the old one before its loss is clipped.",
    }),
    passes: Count.default(1).meta({ description: "Passes over each batch." }),
    ...adam,
  })
  .prefault({})
  .meta({ description: "Updates of the critic." });

const ppoTraining = {
  iterations: Numbered.meta({ description: "Iterations of the run." }),
  gamma: Share.default(1).meta({
    description: "Discount per sampled token. 1: an episode's reward counts the same for all its tokens.",
  }),
  lambda: Share.default(1).meta({
    description: "λ of generalised advantage estimation. 1: no bias from the critic.",
  }),
  truncation: z.enum(["terminal", "zero", "bootstrap"]).default("terminal").meta({
    description:
      "What an episode earns that ran out of turns or context. terminal: its reward (T1). zero: nothing, so that stopping in time is worth something. bootstrap: the critic's value at the cut instead of the reward.",
  }),
  lossMean: z.enum(["episode", "token"]).default("episode").meta({
    description:
      "episode: every episode weighs the same (T1). token: every sampled token weighs the same, so long episodes weigh more.",
  }),
  minibatches: Count.default(1).meta({ description: "Optimizer steps that a pass is cut into." }),
  replay: z
    .boolean()
    .default(true)
    .meta({ description: "Train under the experts that the sampler used (R3). Off only to compare." }),
  permuteRewards: z.boolean().default(false).meta({
    description:
      "Control run: the rewards of an iteration are handed to its episodes at random. Nothing can be learned from them, so any gain would be an artefact.",
  }),
  actor: Actor,
  critic: Critic,
};

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
  seed: z.int().nonnegative().default(0).meta({ description: "Everything random is derived from it." }),
  tasks: Tasks,
  rollout: Rollout,
  agent: Agent,
  sampling: Sampling,
  reward: RewardConfig,
  verifier: Verifier,
  evaluation: Evaluation.optional(),
  keep: Keep,
  threads: z.int().nonnegative().default(0).meta({
    description:
      "Threads of sampler and trainer; 0 takes every core. The same number gives the same bytes; another one may add up small products in another order.",
  }),
};

const NewModel = z
  .strictObject({
    vocabSize: Count.default(512).meta({
      description: "Tokens of the byte-level BPE, special ones included; learned from the pool's texts.",
    }),
    hiddenSize: Count.default(128).meta({ description: "Width." }),
    layers: Count.default(4).meta({ description: "Layers, each with experts." }),
    heads: Count.default(4).meta({ description: "Query heads." }),
    keyValueHeads: Count.default(2).meta({ description: "Key and value heads." }),
    headDim: Count.default(32).meta({ description: "Width of a head." }),
    experts: Count.default(8).meta({ description: "Experts per layer." }),
    expertsPerToken: Count.default(2).meta({ description: "Experts each token uses." }),
    expertSize: Count.default(128).meta({ description: "Inner width of an expert." }),
    ropeTheta: Rate.default(10_000).meta({ description: "Base of the rotary position embedding." }),
    maxPositions: Count.default(512).meta({ description: "Longest context the model can be run with." }),
  })
  .meta({ description: "Shape of a model that is trained from nothing." });
export type NewModel = z.infer<typeof NewModel>;

const TRAINING = { description: "How the networks are updated." };

const SftConfig = z.strictObject({
  kind: z.literal("sft").meta({
    description:
      "sft: supervised training on demonstrations that are executed in sandboxes; every task carries a demonstration.json.",
  }),
  ...common,
  policy: ModelSource.optional().meta({
    description:
      "Model to go on from. Runs of kind sft may leave it out and begin with a new one of the shape `model`.",
  }),
  model: NewModel.optional(),
  training: z
    .strictObject({
      iterations: Numbered.meta({
        description:
          "Iterations of the run. In sft each executes `rollout.episodes` demonstrations and trains on them.",
      }),
      passes: Count.default(1).meta({ description: "Passes over the demonstrations of an iteration." }),
      episodesPerStep: Count.default(16).meta({ description: "Demonstrations per optimizer step." }),
      learningRate: Rate.default(1e-3).meta({ description: "Peak of the schedule." }),
      warmupSteps: z.int().nonnegative().default(50).meta({ description: "Steps of linear rise." }),
      finalShare: Share.default(0.1).meta({
        description: "Share of the peak to which a cosine falls until the last step.",
      }),
      balanceFactor: z
        .number()
        .nonnegative()
        .default(0.01)
        .meta({ description: "Factor on the load-balancing loss of the experts." }),
      minReward: z.number().default(0).meta({
        description: "Demonstrations that earned less are not trained on. 0: all, mistakes included.",
      }),
      ...adam,
    })
    .meta(TRAINING),
});

const CriticWarmupConfig = z.strictObject({
  kind: z.literal("critic-warmup").meta({
    description:
      "critic-warmup: PPO on another pool whose only product is its critic; its policy is thrown away.",
  }),
  ...common,
  policy: ModelSource,
  training: z.strictObject(ppoTraining).meta(TRAINING),
});

const PpoConfig = z.strictObject({
  kind: z
    .literal("ppo")
    .meta({ description: "ppo: reinforcement learning by PPO with a separate critic and replayed routing." }),
  ...common,
  policy: ModelSource,
  training: z.strictObject(ppoTraining).meta(TRAINING),
});

export const RunConfig = z.discriminatedUnion("kind", [SftConfig, CriticWarmupConfig, PpoConfig]);
export type RunConfig = z.infer<typeof RunConfig>;
export type SftConfig = z.infer<typeof SftConfig>;
/** The two kinds that are trained by PPO. */
export type PpoRunConfig = z.infer<typeof PpoConfig> | z.infer<typeof CriticWarmupConfig>;
