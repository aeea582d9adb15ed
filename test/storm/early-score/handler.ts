// The deployed function for scores, whose first call has so little time left that it ends early. Its work goes on beside
// the second call, as that of a function which was not frozen in time.
import type { Context } from "aws-lambda";
import { handler as deployed } from "../../../lambdas/score/handler.ts";

/** A function answers ten seconds before its end. */
const REMAINING_MS = 10_020;

let calls = 0;

export function handler(event: unknown, context: Context): Promise<unknown> {
  calls += 1;
  const getRemainingTimeInMillis =
    calls === 1 ? () => REMAINING_MS : () => context.getRemainingTimeInMillis();
  return deployed(event, { ...context, getRemainingTimeInMillis });
}
