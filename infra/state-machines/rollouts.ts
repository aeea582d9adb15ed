// Runs the episodes of a phase, an iteration's or an evaluation's: plan them, make their sandbox images ready, and play
// them in shards, a driver task per shard.
import { inOrder, type MapState, type State, type Template } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { caught, fail, runDriver, stage, unlessOurFault } from "./tasks.ts";

interface RolloutOptions {
  /** Which phase: what the plan stage is called with. */
  readonly phase: { readonly [key: string]: Template };
  /** Variable that keeps what was planned. Not one of an outer scope: inside a branch it could not be assigned. */
  readonly variable: string;
  /** Ends every state's name: names are unique in the whole machine. */
  readonly suffix: string;
  /** State to go on with where nothing is left to run. */
  readonly next: string;
  /** Where every failure goes; left out, it fails the machine. */
  readonly onFailure?: string;
}

export function rollouts(
  parts: Parts,
  { phase, variable, suffix, next, onFailure }: RolloutOptions,
): Record<string, State> {
  const plan = `$${variable}`;
  const named = (name: string): string => `${name}${suffix}`;
  const failing =
    onFailure === undefined ? {} : { Catch: [{ ErrorEquals: ["States.ALL"] as const, Next: onFailure }] };
  return {
    [named("Plan")]: stage(parts, "plan", phase, {
      Assign: { [variable]: "{% $states.result.Payload %}" },
      ...failing,
    }),
    [named("Prepare")]: stage(
      parts,
      "prepare",
      { phase: `{% ${plan}.phase %}` },
      { Output: "{% $states.result.Payload %}", ...failing },
    ),
    [named("ImagesReady")]: {
      Type: "Choice",
      Choices: [{ Condition: "{% $states.input.ready %}", Next: named("AnythingToRun") }],
    },
    [named("WaitForImages")]: { Type: "Wait", Seconds: 30, Next: named("Prepare") },
    [named("AnythingToRun")]: {
      Type: "Choice",
      Choices: [{ Condition: `{% ${plan}.shardCount = 0 %}`, Next: next }],
    },
    [named("Rollouts")]: { ...shards(parts, plan, suffix), ...failing, Next: next },
  };
}

function shards(parts: Parts, plan: string, suffix: string): MapState {
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
    // Shards that fail are repeated or recorded as failures by later stages, which decide if enough is left.
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

/** Spot first, on demand after an interruption. Finished episodes stay: the second driver plays the rest. */
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
