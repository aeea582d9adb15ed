// Plays the shards of a plan: a Distributed Map with a driver task per shard.
import { inOrder, type MapState } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { caught, fail, runDriver, unlessOurFault } from "./tasks.ts";

/** @param plan variable that holds the plan @param suffix of every state's name */
export function shards(parts: Parts, plan: string, suffix: string): MapState {
  const { partition, bucket } = parts;
  return {
    Type: "Map",
    Comment:
      "One driver per shard of episodes; results lie in the store, what is written here is bookkeeping",
    Label: `Rollouts${suffix}`,
    ItemReader: {
      Resource: `arn:${partition}:states:::s3:getObject`,
      ReaderConfig: { InputType: "JSONL" },
      Arguments: { Bucket: bucket, Key: `{% ${plan}.shardsKey %}` },
    },
    MaxConcurrency: parts.rollouts.maxConcurrency,
    // Later stages repeat failed shards or record them as failures, and decide if enough episodes are left.
    ToleratedFailurePercentage: parts.rollouts.toleratedFailurePercentage,
    ItemProcessor: {
      ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
      ...shard(parts, suffix),
    },
    ResultWriter: {
      Resource: `arn:${partition}:states:::s3:putObject`,
      Arguments: { Bucket: bucket, Prefix: "{% 'map-results/' & $states.context.Execution.Name %}" },
    },
    Output: {},
  };
}

/** Plays a shard on Spot first, on demand after an interruption. The second driver plays only unfinished episodes. */
function shard(parts: Parts, suffix: string) {
  const named = (name: string): string => `${name}${suffix}`;
  const small = { Output: { shard: "{% $states.input.shard %}" } };
  const onDemand = { [named("PlayOnDemand")]: { ...runDriver(parts, "FARGATE", small), End: true } } as const;
  if (!parts.driver.spot) return inOrder(onDemand);
  return inOrder({
    [named("PlayOnSpot")]: {
      ...runDriver(parts, "FARGATE_SPOT", {
        Catch: [caught(["States.ALL"], named("SpotEnded"))],
        ...small,
      }),
      End: true,
    },
    [named("SpotEnded")]: unlessOurFault(named("ShardRefused"), named("ShardBroken")),
    ...onDemand,
    [named("ShardRefused")]: fail("InputError", "the driver refused its input; its log says why"),
    [named("ShardBroken")]: fail("InvariantError", "a bug in the driver; its log has the stack"),
  });
}
