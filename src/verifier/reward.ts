// Computes the reward that training uses from a verifier's report. It is a pure function, so that a finished run can be
// scored again under another setting.
import { createHash } from "node:crypto";
import { z } from "zod";
import type { RewardConfig } from "../settings/grading-config.ts";
import { earnsNothing, VerifierCauseName, type VerifierReport } from "./report.ts";

/** Weight of partial success in the ratio reward (T1, comparison form). */
const RATIO_SHARE = 0.4;

export const Reward = z.strictObject({
  value: z.number(),
  kind: z.enum(["dense", "ratio", "binary"]),
  passed: z.int().nonnegative(),
  total: z.int().nonnegative(),
  outcome: z.number().nullable(),
  cause: VerifierCauseName.optional(),
});
export type Reward = z.infer<typeof Reward>;

/**
 * With P passing of T assertions, outcome b and scale S (T1, arXiv 2609.11042):
 *
 *   dense  P / S        ratio  min(max(b, 0.4·P/T), max(1, b))        binary  b
 *
 * Without a readable report, dense and ratio fall back to b and keep the cause. A contradictory report earns nothing.
 */
export function computeReward(
  { outcome, tests, cause }: VerifierReport,
  { kind, scale }: RewardConfig,
): Reward {
  const passed = tests.filter(test => test.status === "passed").length;
  const total = tests.length;
  const b = outcome ?? 0;
  const facts = { kind, passed, total, outcome, cause };
  if (earnsNothing(cause)) return { value: 0, ...facts };
  if (total === 0 || kind === "binary") return { value: b, ...facts };
  if (kind === "dense") return { value: passed / scale, ...facts };
  return { value: Math.min(Math.max(b, (RATIO_SHARE * passed) / total), Math.max(1, b)), ...facts };
}

/** Name of a reward's object, so that scores under different settings lie side by side. */
export function rewardConfigHash({ kind, scale }: RewardConfig): string {
  return createHash("sha256").update(JSON.stringify({ kind, scale })).digest("hex").slice(0, 16);
}

/** Name for a later grading, which also has a mode and a number. */
export function regradeHash({ kind, scale }: RewardConfig, mode: string, number: number): string {
  return createHash("sha256")
    .update(JSON.stringify({ kind, scale, mode, number }))
    .digest("hex")
    .slice(0, 16);
}
