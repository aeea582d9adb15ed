// The state machine of one iteration; src/stages/iteration.ts holds the order of its steps.
import { ITERATION } from "../../src/stages/iteration.ts";
import { type Definition, inOrder } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { statesOf } from "./steps.ts";

/** Input: `{ run, iteration, overlap, last }`. Safe to start again: every stage keeps the objects that exist. */
export function iterationMachine(parts: Parts): Definition {
  return {
    QueryLanguage: "JSONata",
    Comment: "plan, rollouts, score, close, train, publish, evaluate",
    TimeoutSeconds: parts.limits.iterationSeconds,
    ...inOrder({
      Init: {
        Type: "Pass",
        Assign: {
          run: "{% $states.input.run %}",
          iteration: "{% $states.input.iteration %}",
          overlap: "{% $states.input.overlap %}",
          rollAhead: "{% $states.input.overlap and $not($states.input.last) %}",
        },
      },
      ...statesOf(ITERATION, { parts, suffix: "", next: "Done" }),
      Done: {
        Type: "Succeed",
        Output: { run: "{% $run %}", iteration: "{% $iteration %}", version: "{% $published.version %}" },
      },
      Stopped: {
        Type: "Succeed",
        Output: { run: "{% $run %}", iteration: "{% $iteration %}", stopped: true },
      },
    }),
  };
}
