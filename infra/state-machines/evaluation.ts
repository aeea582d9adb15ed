// An evaluation does the same as an iteration up to the closed list, then computes rates with intervals.
import { EVALUATION } from "../../src/stages/iteration.ts";
import { type Definition, inOrder } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { statesOf } from "./steps.ts";

/**
 * Input: `{ run, evaluation, version }`, and `pool: { folder, episodes }` for an evaluation on another pool than the run's
 * own, with the number of episodes per task. Safe to start again.
 */
export function evaluationMachine(parts: Parts): Definition {
  return {
    QueryLanguage: "JSONata",
    Comment: "plan, rollouts, score, close, summarise",
    TimeoutSeconds: parts.limits.evaluationSeconds,
    ...inOrder({
      Init: {
        Type: "Pass",
        Assign: {
          run: "{% $states.input.run %}",
          evaluation: "{% $states.input.evaluation %}",
          version: "{% $states.input.version %}",
          pool: "{% $exists($states.input.pool) ? $states.input.pool : null %}",
        },
      },
      // The last step ends the state machine, so no state follows it.
      ...statesOf(EVALUATION, { parts, suffix: "", next: "Done" }),
    }),
  };
}
