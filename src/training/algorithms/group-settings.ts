// Settings that the algorithms share which compare the episodes of a task with each other.
import { z } from "zod";
import { Numbered } from "../../settings/numbers.ts";
import { policySettings, TRUNCATION } from "./policy-settings.ts";

export const groupSettings = {
  ...policySettings,
  groupSize: Numbered.min(2).default(8).meta({
    description:
      "Episodes of each task in an iteration; rollout.episodes is a multiple of it. 8: slime and verl's examples; DeepSeekMath had 64. Larger groups know their baseline better, smaller ones see more tasks.",
  }),
  scale: z.enum(["std", "none"]).default("std").meta({
    description:
      "What differences from the group's mean reward are divided by. std: the group's standard deviation (DeepSeekMath, arXiv 2402.03300). none: nothing (Dr. GRPO, arXiv 2503.20783), so that nearly solved and nearly hopeless tasks weigh no more than others.",
  }),
  truncation: z.enum(["terminal", "zero"]).default("terminal").meta({ description: TRUNCATION }),
};
