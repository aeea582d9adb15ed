// The score stage as a function whose first call has too little time: it answers that it was not done, and its work goes
// on beside the second call, as that of a function which was not frozen in time.
import type { LambdaFunction } from "../../src/asl/executors/lambda.ts";
import { Failure } from "../../src/failure/errors.ts";

const FIRST_CALL_MS = 20;

export function endsEarly(handler: LambdaFunction["handler"]): LambdaFunction["handler"] {
  let calls = 0;
  return async (event, context) => {
    calls += 1;
    const working = handler(event, context);
    if (calls > 1) return working;
    working.catch(() => {}); // the second call fails by the same reason
    await context.sleep(FIRST_CALL_MS);
    throw new Failure("StageTimedOut", "the first call had no time", { retryable: true });
  };
}
