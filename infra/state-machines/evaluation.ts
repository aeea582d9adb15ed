// An evaluation: the same as an iteration up to the closed list, then rates with intervals.
import { type Definition, inOrder } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { rollouts } from "./rollouts.ts";
import { stage } from "./tasks.ts";

/**
 * Input: `{ run, evaluation, version }`, and `pool: { folder, episodes }` where it is not the run's own evaluation: any
 * pool, so many episodes per task. Safe to start again.
 */
export function evaluationMachine(parts: Parts): Definition {
  const which = { run: "{% $run %}", evaluation: "{% $evaluation %}" };
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
      ...rollouts(parts, {
        phase: { ...which, version: "{% $version %}", pool: "{% $pool %}" },
        variable: "plan",
        suffix: "",
        next: "Score",
      }),
      Score: stage(parts, "score", { phase: "{% $plan.phase %}" }),
      Close: stage(parts, "close", {
        phase: "{% $plan.phase %}",
        policyVersion: "{% $plan.policyVersion %}",
      }),
      Summarise: stage(parts, "summarise", which, { Output: "{% $states.result.Payload %}" }),
    }),
  };
}
