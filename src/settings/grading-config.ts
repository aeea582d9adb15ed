// How what an episode left is graded, and what it earns.
import { z } from "zod";
import { Rate } from "./numbers.ts";

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

export const Verifier = z
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
