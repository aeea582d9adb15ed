// The kinds of tasks of our state machines, each with the retries that its kind of failure deserves.
import { BAD_INPUT, OUR_BUG } from "../../src/failure/exit-code.ts";
import {
  JOB_NOT_SUBMITTED,
  type MachineErrorName,
  STAGE_MAY_RUN_AGAIN,
  TASK_NOT_STARTED,
} from "../../src/failure/machine-errors.ts";
import { DRIVER_JOB, TRAINER_JOB } from "../../src/stages/jobs.ts";
import type { StageName } from "../../src/stages/step.ts";
import type { Catcher, ChoiceState, Retrier, State, TaskState, Template } from "./asl.ts";
import type { Parts } from "./parts.ts";

type Rest = Pick<TaskState, "Assign" | "Output" | "Catch" | "Next" | "Comment">;

/** A Lambda function runs one stage. Its output is `$states.result.Payload`. */
export function stage(
  { partition, stages }: Parts,
  name: StageName,
  payload: { readonly [key: string]: Template },
  rest: Rest = {},
): TaskState {
  const { arn, timeoutSeconds } = stages[name];
  return {
    Type: "Task",
    Resource: `arn:${partition}:states:::lambda:invoke`,
    Arguments: { FunctionName: arn, Payload: payload },
    // Lambda ends the function earlier; this ends the state when Lambda does not answer.
    TimeoutSeconds: timeoutSeconds + 60,
    Retry: [retry(STAGE_MAY_RUN_AGAIN, { firstSeconds: 2, attempts: 6, longestSeconds: 60 })],
    ...rest,
  };
}

export type Market = "FARGATE_SPOT" | "FARGATE";

/** A driver task plays one shard of episodes; the state waits until it has stopped. */
export function runDriver({ partition, driver }: Parts, market: Market, rest: Rest = {}): TaskState {
  return {
    Type: "Task",
    Resource: `arn:${partition}:states:::ecs:runTask.sync`,
    Arguments: {
      Cluster: driver.clusterArn,
      TaskDefinition: driver.family,
      CapacityProviderStrategy: [{ CapacityProvider: market, Weight: 1 }],
      PlatformVersion: "1.4.0",
      NetworkConfiguration: {
        AwsvpcConfiguration: {
          Subnets: driver.subnets,
          SecurityGroups: [driver.securityGroup],
          AssignPublicIp: "ENABLED",
        },
      },
      Overrides: {
        ContainerOverrides: [
          {
            Name: driver.container,
            Environment: variables(DRIVER_JOB, {
              phase: "{% $states.input.phase %}",
              episodes: "{% $states.input.episodes %}",
              policyVersion: "{% $string($states.input.policyVersion) %}",
              market,
            }),
          },
        ],
      },
      EnableECSManagedTags: true,
      PropagateTags: "TASK_DEFINITION",
      Tags: [{ Key: "t1:run", Value: "{% $states.input.run %}" }],
    },
    TimeoutSeconds: driver.timeoutSeconds,
    // At 20 task starts a second a wave of drivers waits for minutes; on Spot give up sooner and try on demand.
    Retry: [
      retry(TASK_NOT_STARTED, {
        firstSeconds: 5,
        attempts: market === "FARGATE" ? 12 : 3,
        longestSeconds: 120,
      }),
      // Mostly a throttled look-up of subnets; a parameter that is really wrong fails after few tries.
      retry(["ECS.InvalidParameterException"], { firstSeconds: 10, attempts: 4, longestSeconds: 60 }),
    ],
    ...rest,
  };
}

/** A Batch job trains on a closed iteration. Lost hosts are retried by Batch itself, from the job definition. */
export function trainingJob(
  { partition, training }: Parts,
  queueArn: string,
  { run, iteration }: { readonly run: string; readonly iteration: string },
  rest: Rest = {},
): TaskState {
  return {
    Type: "Task",
    Resource: `arn:${partition}:states:::batch:submitJob.sync`,
    Arguments: {
      JobName: `{% ${run} & '-' & $formatNumber(${iteration}, '000000') %}`,
      JobQueue: queueArn,
      JobDefinition: training.jobDefinition,
      ContainerOverrides: {
        Environment: variables(TRAINER_JOB, {
          run: `{% ${run} %}`,
          iteration: `{% $string(${iteration}) %}`,
        }),
      },
      PropagateTags: true,
      Tags: { "t1:run": `{% ${run} %}` },
    },
    TimeoutSeconds: training.timeoutSeconds,
    Retry: [retry(JOB_NOT_SUBMITTED, { firstSeconds: 5, attempts: 8, longestSeconds: 120 })],
    ...rest,
  };
}

/** Another machine's execution, until it has ended; its output is `$states.result.Output`. */
export function execution(
  { partition }: Parts,
  machineArn: string,
  name: string,
  input: { readonly [key: string]: Template },
  timeoutSeconds: number,
  rest: Rest = {},
): TaskState {
  return {
    Type: "Task",
    Resource: `arn:${partition}:states:::states:startExecution.sync:2`,
    Arguments: { StateMachineArn: machineArn, Name: name, Input: input },
    TimeoutSeconds: timeoutSeconds,
    ...rest,
  };
}

/** Starts an execution and goes on at once; a state machine hands over to a new execution of itself this way. */
export function handOver(
  { partition }: Parts,
  machineArn: string,
  name: string,
  input: { readonly [key: string]: Template },
  rest: Rest = {},
): TaskState {
  return {
    Type: "Task",
    Resource: `arn:${partition}:states:::states:startExecution`,
    Arguments: { StateMachineArn: machineArn, Name: name, Input: input },
    TimeoutSeconds: 60,
    ...rest,
  };
}

/** Environment variables of a job, as a state machine sets them: each is an expression or a constant text. */
function variables<Key extends string>(
  { names }: { readonly names: Readonly<Record<Key, string>> },
  values: Readonly<Record<Key, string>>,
) {
  return (Object.keys(values) as Key[]).map(key => ({ Name: names[key], Value: values[key] }));
}

function retry<const Name extends MachineErrorName>(
  names: readonly Name[],
  {
    firstSeconds,
    attempts,
    longestSeconds,
  }: { readonly firstSeconds: number; readonly attempts: number; readonly longestSeconds: number },
): Retrier {
  return {
    ErrorEquals: names,
    IntervalSeconds: firstSeconds,
    MaxAttempts: attempts,
    BackoffRate: 2,
    MaxDelaySeconds: longestSeconds,
    JitterStrategy: "FULL",
  };
}

/**
 * Exit code of the container in a task's or job's error, -1 if the container never ended. Both causes hold the
 * description of the task or job as JSON text; a pattern reads it, since a truncated cause is no valid JSON.
 */
const EXIT_CODE = `{% ($found := $match($states.errorOutput.Cause, /"ExitCode":\\s*([0-9]+)/); $exists($found) ? $number($found[0].groups[0]) : -1) %}`;

/**
 * Catches the errors that end a task or a job, so that `unlessOurFault` can decide.
 *
 * @param names errors to catch; leave time-outs out where a repeat would only double the bill
 */
export function caught(names: Catcher["ErrorEquals"], next: string): Catcher {
  return { ErrorEquals: names, Next: next, Assign: { exitCode: EXIT_CODE }, Output: "{% $states.input %}" };
}

/** Decides after the first market: bad input and bugs end the shard or job, everything else gets the second market. */
export function unlessOurFault(badInput: string, bug: string): ChoiceState {
  return {
    Type: "Choice",
    Choices: [
      { Condition: `{% $exitCode = ${BAD_INPUT} %}`, Next: badInput },
      { Condition: `{% $exitCode = ${OUR_BUG} %}`, Next: bug },
    ],
  };
}

export function fail(error: string, cause: string): State {
  return { Type: "Fail", Error: error, Cause: cause };
}
