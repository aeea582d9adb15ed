// What the deployed preflight says of a run before money is spent: `t1 preflight` prints it.
import { z } from "zod";

export const PreflightReport = z.strictObject({
  /** Each would end the run. */
  problems: z.array(z.string()).readonly(),
  /** Worth knowing, no reason to refuse. */
  warnings: z.array(z.string()).readonly(),
  /** Until the last sandbox of a full wave was asked for. */
  launchSeconds: z.number().optional(),
  /** That the account's quotas allow at once. */
  possibleSandboxes: z.number().optional(),
});
export type PreflightReport = z.infer<typeof PreflightReport>;
