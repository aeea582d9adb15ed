// One iteration. Episodes are planned, played, scored and closed; the closed list is trained on; the new policy is
// published. Only store keys and counts travel between states.
import { type Catcher, type Definition, type Flowchart, inOrder } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { rollouts } from "./rollouts.ts";
import { caught, execution, fail, stage, trainingJob, unlessOurFault } from "./tasks.ts";

/** Input: `{ run, iteration, overlap, last }`. Safe to start again: every stage keeps what is there. */
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
      ...rollouts(parts, {
        phase: { run: "{% $run %}", iteration: "{% $iteration %}", overlap: "{% $overlap %}" },
        variable: "plan",
        suffix: "",
        next: "Score",
      }),
      Score: stage(parts, "score", { phase: "{% $plan.phase %}" }),
      Close: stage(
        parts,
        "close",
        {
          phase: "{% $plan.phase %}",
          policyVersion: "{% $plan.policyVersion %}",
          pool: "{% $plan.pool %}",
        },
        { Catch: [WHEN_STOPPED] },
      ),
      Update: {
        Type: "Parallel",
        Comment: "With overlap, the next iteration's episodes are played by the old policy meanwhile",
        Branches: [train(parts), rollAhead(parts)],
        Output: "{% $states.result[0] %}",
      },
      Publish: stage(
        parts,
        "publish",
        { run: "{% $run %}", iteration: "{% $iteration %}", training: "{% $states.input %}" },
        { Assign: { published: "{% $states.result.Payload %}" }, Catch: [WHEN_STOPPED] },
      ),
      EvaluationDue: {
        Type: "Choice",
        Choices: [{ Condition: "{% $not($published.evaluationDue) %}", Next: "Done" }],
      },
      Evaluate: execution(
        parts,
        parts.machines.evaluationArn,
        "{% $states.context.Execution.Name & '-eval' %}",
        {
          run: "{% $run %}",
          evaluation: "{% $published.evaluation %}",
          version: "{% $published.version %}",
        },
        parts.limits.evaluationSeconds,
      ),
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

/**
 * A run that was told to stop moves no further (src/run/run-state.ts). That is no failure: the run's machine looks at
 * the state next and ends as stopped.
 */
const WHEN_STOPPED = { ErrorEquals: ["RunStopped"], Next: "Stopped" } satisfies Catcher;

/** On Spot first where the deployment has it. Batch cancels a job that gets no machine in time. */
function train(parts: Parts): Flowchart {
  const { spotQueueArn, onDemandQueueArn } = parts.training;
  const of = { run: "$run", iteration: "$iteration" };
  const times = (market: string) => ({
    Output: {
      market,
      startedAtMs: "{% $states.result.StartedAt %}",
      stoppedAtMs: "{% $states.result.StoppedAt %}",
    },
  });
  const onDemand = {
    TrainOnDemand: { ...trainingJob(parts, onDemandQueueArn, of, times("on-demand")), End: true },
  } as const;
  if (spotQueueArn === undefined) return inOrder(onDemand);
  return inOrder({
    TrainOnSpot: {
      ...trainingJob(parts, spotQueueArn, of, {
        // A time-out is not caught: what hung for so long would hang again, at a higher price.
        Catch: [caught(["States.TaskFailed"], "SpotTrainingEnded")],
        ...times("spot"),
      }),
      End: true,
    },
    SpotTrainingEnded: unlessOurFault("TrainingRefused", "TrainingBroken"),
    ...onDemand,
    TrainingRefused: fail("InputError", "the trainer refused its input; its log says why"),
    TrainingBroken: fail("InvariantError", "a bug in the trainer; its log has the stack"),
  });
}

/** One-step asynchrony. A failure here is none of this iteration: the next one plays what is missing. */
function rollAhead(parts: Parts): Flowchart {
  return inOrder({
    Overlap: {
      Type: "Choice",
      Choices: [{ Condition: "{% $not($rollAhead) %}", Next: "NothingAhead" }],
    },
    ...rollouts(parts, {
      phase: { run: "{% $run %}", iteration: "{% $iteration + 1 %}", overlap: "{% $overlap %}" },
      variable: "ahead",
      suffix: "Ahead",
      next: "NothingAhead",
      onFailure: "NothingAhead",
    }),
    NothingAhead: { Type: "Pass", Output: {} },
  });
}
