// Trains on a closed iteration with a Batch job.
import type { Together } from "../../src/stages/step.ts";
import { type Flowchart, inOrder } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { caught, fail, trainingJob, unlessOurFault } from "./tasks.ts";

/** Trains on Spot first where the deployment has it. Batch cancels a job that gets no instance in time. */
export function train(parts: Parts, of: Together["train"]): Flowchart {
  const { spotQueueArn, onDemandQueueArn } = parts.training;
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
        // Do not catch a time-out: a job that hung for so long would hang again, at a higher price.
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
